import type { ChangedApiKey } from '../announce-change.js'
import { announceChange } from '../announce-change.js'
import { changeApiKey } from '../change-api-key.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'
import type { Clock } from '../ports/clock.js'
import type { QuotaControl } from '../ports/quota-control.js'

/** Revokes a key permanently. A key that is already revoked keeps its revocation time. `by` is the operator. Throws `ApiKeyNotFound`. */
export type RevokeApiKey = (keyId: string, by: string) => Promise<ChangedApiKey>

export function makeRevokeApiKey(ports: { apiKeyStore: ApiKeyStore; quotaControl: QuotaControl; clock: Clock }): RevokeApiKey {
  return async (keyId, by) => {
    const revoked = await changeApiKey(ports, keyId, by, (key, revokedAtMs) => {
      if (key.revokedAtMs !== undefined) return undefined
      return { key: { ...key, revokedAtMs }, change: { action: 'revoked', before: {}, after: { revokedAtMs } } }
    })
    return announceChange(ports.quotaControl, revoked)
  }
}
