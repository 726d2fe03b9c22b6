import type { PlanName } from './plan.js'
import type { Limits } from './quota.js'

/** The stored record of an API key. The secret itself is shown once, when the key is issued, and never stored. */
export interface ApiKey {
  /** The public name: the only form that appears in logs, Redis and metrics. */
  readonly keyId: string
  /** SHA-256 of the secret, in lower-case hexadecimal. */
  readonly secretHash: string
  /** Helps people recognize the key: the prefix and the last four characters of the secret. */
  readonly hint: string
  readonly owner: string
  readonly plan: PlanName
  /** If present, these replace the limits of the plan. */
  readonly limits?: Limits
  readonly createdAtMs: number
  /** 1 when the key is issued; each change adds 1. */
  readonly version: number
  /** The key is invalid from this time on. */
  readonly expiresAtMs?: number
  readonly revokedAtMs?: number
}

/** An API key with the details that only operators see. */
export interface StoredApiKey extends ApiKey {
  /** Accurate to the hour. Absent if the key was never used. */
  readonly lastUsedAtMs?: number
}

export const API_KEY_STATES = ['active', 'expired', 'revoked'] as const
export type ApiKeyState = (typeof API_KEY_STATES)[number]

export function getApiKeyState(key: ApiKey, nowMs: number): ApiKeyState {
  if (key.revokedAtMs !== undefined) return 'revoked'
  return key.expiresAtMs === undefined || nowMs < key.expiresAtMs ? 'active' : 'expired'
}

export function isUsable(key: ApiKey, nowMs: number): boolean {
  return getApiKeyState(key, nowMs) === 'active'
}

/** Recording the use of a key takes at most one write per hour, however often the key is used. */
const LAST_USED_ACCURACY_MS = 60 * 60 * 1000

/** Whether a use of the key now must be recorded: the key is usable and its last recorded use is an hour or more ago. */
export function shouldRecordUse(key: ApiKey, lastUsedAtMs: number | undefined, nowMs: number): boolean {
  return isUsable(key, nowMs) && (lastUsedAtMs === undefined || nowMs - lastUsedAtMs >= LAST_USED_ACCURACY_MS)
}
