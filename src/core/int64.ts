export const INT64_MIN = -(2n ** 63n)
export const INT64_MAX = 2n ** 63n - 1n

/** The largest ID that the service assigns: 2^53 − 1, the largest integer that every JSON parser reads exactly. */
export const MAX_ASSIGNED_ID = BigInt(Number.MAX_SAFE_INTEGER)

export function isInt64(value: bigint): boolean {
  return value >= INT64_MIN && value <= INT64_MAX
}

/**
 * Parses a canonical decimal number (`0`, `-7`; no `+`, no `-0`, no leading zeros). Returns `undefined` for any other text, and for a number
 * outside int64.
 */
export function parseInt64(text: string): bigint | undefined {
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) return undefined
  const value = BigInt(text)
  return isInt64(value) ? value : undefined
}
