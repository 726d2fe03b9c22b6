import type { PlanName } from './plan.js'
import type { Limits } from './quota.js'

/** The stored record of an API key. The secret itself is shown once, when the key is issued, and never stored. */
export interface ApiKey {
  /** The public name: the only form that appears in logs, Redis and metrics. */
  readonly keyId: string
  /** SHA-256 of the secret, in lower-case hexadecimal. */
  readonly secretHash: string
  /** Present after a rotation, until the rotation is finished or the next one begins. */
  readonly oldSecret?: OldSecret
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

/** The secret that the last rotation replaced. */
export interface OldSecret {
  readonly hash: string
  readonly hint: string
  /** The end of the grace period: the secret is invalid from this time on. */
  readonly expiresAtMs: number
  /** Accurate to the hour. Absent if the secret was not used since the rotation. */
  readonly lastUsedAtMs?: number
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

/** Returns the old secret of the key if it is still valid. */
export function getValidOldSecret(key: ApiKey, nowMs: number): OldSecret | undefined {
  const { oldSecret } = key
  return oldSecret && nowMs < oldSecret.expiresAtMs && getApiKeyState(key, nowMs) === 'active' ? oldSecret : undefined
}

/** Whether the secret with this hash authenticates requests: the key is active, and the secret is its current one or a valid old one. */
export function isValidSecret(key: ApiKey, secretHash: string, nowMs: number): boolean {
  if (secretHash !== key.secretHash) return secretHash === getValidOldSecret(key, nowMs)?.hash
  return getApiKeyState(key, nowMs) === 'active'
}

/** Recording the use of a key takes at most one write per hour, however often the key is used. */
const LAST_USED_ACCURACY_MS = 60 * 60 * 1000

interface SecretUse {
  readonly secretHash: string
  /** The last recorded use of the key with any secret. */
  readonly lastUsedAtMs: number | undefined
}

/** Whether a use of the secret now must be recorded: the secret is valid, and its last recorded use is an hour or more ago. */
export function shouldRecordUse(key: ApiKey, { secretHash, ...use }: SecretUse, nowMs: number): boolean {
  const { lastUsedAtMs } = key.oldSecret?.hash === secretHash ? key.oldSecret : use
  return isValidSecret(key, secretHash, nowMs) && (lastUsedAtMs === undefined || nowMs - lastUsedAtMs >= LAST_USED_ACCURACY_MS)
}
