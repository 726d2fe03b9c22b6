import type { ChangedApiKey } from '../announce-change.js'
import { announceChange } from '../announce-change.js'
import { ApiKeyNotFound } from '../errors.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'
import type { Clock } from '../ports/clock.js'
import type { QuotaControl } from '../ports/quota-control.js'

/** Revokes a key permanently. A key that is already revoked keeps its revocation time. Throws `ApiKeyNotFound`. */
export type RevokeApiKey = (keyId: string) => Promise<ChangedApiKey>

export function makeRevokeApiKey(ports: { apiKeyStore: ApiKeyStore; quotaControl: QuotaControl; clock: Clock }): RevokeApiKey {
  return async (keyId) => {
    const key = await ports.apiKeyStore.revoke(keyId, ports.clock.nowMs())
    if (!key) throw new ApiKeyNotFound(keyId)
    return announceChange(ports.quotaControl, key)
  }
}
