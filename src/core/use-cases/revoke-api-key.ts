import type { StoredApiKey } from '../api-key.js'
import { ApiKeyNotFound } from '../errors.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'
import type { Clock } from '../ports/clock.js'

/** For good. A key that is revoked already keeps the time of that. Throws `ApiKeyNotFound`. */
export type RevokeApiKey = (keyId: string) => Promise<StoredApiKey>

export function makeRevokeApiKey({ apiKeyStore, clock }: { apiKeyStore: ApiKeyStore; clock: Clock }): RevokeApiKey {
  return async (keyId) => {
    const key = await apiKeyStore.revoke(keyId, clock.nowMs())
    if (!key) throw new ApiKeyNotFound(`No API key has the id ${keyId}`)
    return key
  }
}
