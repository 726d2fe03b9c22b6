import type { PlanName } from './plan.js'
import type { Limits } from './quota.js'

/** What the service keeps of an API key. The secret itself is shown once, at issue, and kept nowhere. */
export interface ApiKey {
  /** The public name: the only form that reaches logs, Redis or metrics. */
  readonly keyId: string
  /** SHA-256 of the secret, in lower-case hexadecimal. */
  readonly secretHash: string
  /** Enough of the secret to recognise it by: its prefix and last four characters. */
  readonly hint: string
  readonly owner: string
  readonly plan: PlanName
  /** The key's own limits, instead of its plan's. */
  readonly limits?: Limits
  readonly createdAtMs: number
  /** From this instant on the key is invalid. */
  readonly expiresAtMs?: number
  readonly revokedAtMs?: number
}

export function isUsable(key: ApiKey, nowMs: number): boolean {
  return key.revokedAtMs === undefined && (key.expiresAtMs === undefined || nowMs < key.expiresAtMs)
}
