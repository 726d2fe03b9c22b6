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
  /** 1 at issue, and one more with every change since. */
  readonly version: number
  /** From this instant on the key is invalid. */
  readonly expiresAtMs?: number
  readonly revokedAtMs?: number
}

/** An API key with what only operators ask for. */
export interface StoredApiKey extends ApiKey {
  /** To the hour; absent for a key that was never used. */
  readonly lastUsedAtMs?: number
}

export const API_KEY_STATES = ['active', 'expired', 'revoked'] as const
export type ApiKeyState = (typeof API_KEY_STATES)[number]

export function stateOf(key: ApiKey, nowMs: number): ApiKeyState {
  if (key.revokedAtMs !== undefined) return 'revoked'
  return key.expiresAtMs === undefined || nowMs < key.expiresAtMs ? 'active' : 'expired'
}

export function isUsable(key: ApiKey, nowMs: number): boolean {
  return stateOf(key, nowMs) === 'active'
}

/** A key in heavy use costs one write an hour. */
const NOTED_USE_MS = 60 * 60 * 1000

/** Whether a use of the key now is worth a note: of a usable key, whose last noted use is an hour ago. */
export function isUseToNote(key: ApiKey, lastUsedAtMs: number | undefined, nowMs: number): boolean {
  return isUsable(key, nowMs) && (lastUsedAtMs === undefined || nowMs - lastUsedAtMs >= NOTED_USE_MS)
}
