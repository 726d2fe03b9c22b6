import type { ChangedApiKey } from '../announce-change.js'
import { announceChange } from '../announce-change.js'
import type { ApiKey, OldSecret } from '../api-key.js'
import { getApiKeyState } from '../api-key.js'
import { changeApiKey } from '../change-api-key.js'
import { ApiKeyExpired, ApiKeyRevoked, RotationInProgress, StoreUnavailable } from '../errors.js'
import type { ApiKeySecrets } from '../ports/api-key-secrets.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'
import type { Clock } from '../ports/clock.js'
import type { QuotaControl } from '../ports/quota-control.js'

export interface RotatedApiKey extends ChangedApiKey {
  /** Show it to the owner now: it is not stored. */
  readonly secret: string
}

/** It is unknown whether the key was rotated. If it was, `secret` is its new secret, and nobody else knows it. */
export class RotationUnconfirmed extends StoreUnavailable {
  constructor(
    readonly secret: string,
    hint: string,
    { message, cause }: StoreUnavailable,
  ) {
    super(`${message}; the key may have been rotated anyway: it was if petstore keys show prints the hint ${hint}`, { cause })
  }
}

/**
 * Gives a key a new secret. The old one stays valid for the grace period, rounded up to a whole second, but not longer than the key. `by` is
 * the operator. Throws `ApiKeyNotFound`, `ApiKeyRevoked`, `ApiKeyExpired`, `RotationUnconfirmed`, and `RotationInProgress` if the old secret of
 * an earlier rotation is still valid.
 */
export type RotateApiKey = (keyId: string, rotation: { readonly graceMs: number }, by: string) => Promise<RotatedApiKey>

export function makeRotateApiKey(ports: {
  apiKeyStore: ApiKeyStore
  quotaControl: QuotaControl
  secrets: ApiKeySecrets
  clock: Clock
}): RotateApiKey {
  return async (keyId, { graceMs }, by) => {
    const { secret, secretHash, hint } = ports.secrets.generate()
    let replacedHash: string | undefined
    try {
      const rotated = await changeApiKey(ports, keyId, by, ({ oldSecret: earlier, ...key }, nowMs) => {
        replacedHash ??= key.secretHash
        if (key.secretHash !== replacedHash)
          throw new RotationInProgress(`API key ${keyId} was rotated by another command at the same time, and not by this one`)
        requireRotatable(key, earlier, nowMs)
        const before = { hint: key.hint }
        if (graceMs === 0) return { key: { ...key, secretHash, hint }, change: { action: 'rotated', before, after: { hint } } }
        const oldSecret = { hint: key.hint, expiresAtMs: computeGraceEnd(key, nowMs + graceMs) }
        return {
          key: { ...key, secretHash, hint, oldSecret: { ...oldSecret, hash: key.secretHash } },
          change: { action: 'rotated', before, after: { hint, oldSecret } },
        }
      })
      return { ...(await announceChange(ports.quotaControl, rotated)), secret }
    } catch (error) {
      const mayBeStored = replacedHash !== undefined && error instanceof StoreUnavailable
      throw mayBeStored ? new RotationUnconfirmed(secret, hint, error) : error
    }
  }
}

function requireRotatable(key: ApiKey, oldSecret: OldSecret | undefined, nowMs: number): void {
  const state = getApiKeyState(key, nowMs)
  if (state === 'revoked') throw new ApiKeyRevoked(`API key ${key.keyId} is revoked, so it cannot be rotated`)
  if (state === 'expired') throw new ApiKeyExpired(`API key ${key.keyId} has expired, so it cannot be rotated`)
  if (!oldSecret || nowMs >= oldSecret.expiresAtMs) return
  const end = `${new Date(oldSecret.expiresAtMs).toISOString().slice(0, 16).replace('T', ' ')}Z`
  throw new RotationInProgress(
    `API key ${key.keyId} was rotated before, and its old secret is valid until ${end}: wait, or use --finish to invalidate it now`,
  )
}

/** In whole seconds, because clients are told the end in an HTTP date, but not after the key itself expires. */
function computeGraceEnd({ expiresAtMs = Infinity }: ApiKey, endMs: number): number {
  return Math.min(Math.ceil(endMs / 1000) * 1000, expiresAtMs)
}
