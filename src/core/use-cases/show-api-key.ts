import type { StoredApiKey } from '../api-key.js'
import { ApiKeyNotFound } from '../errors.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'

/** Throws `ApiKeyNotFound` if the key does not exist, and `StoreUnavailable` during an outage. */
export type ShowApiKey = (keyId: string) => Promise<StoredApiKey>

export function makeShowApiKey({ apiKeyStore }: { apiKeyStore: ApiKeyStore }): ShowApiKey {
  return async (keyId) => {
    const key = await apiKeyStore.findById(keyId)
    if (!key) throw new ApiKeyNotFound(keyId)
    return key
  }
}
