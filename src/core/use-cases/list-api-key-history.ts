import type { ApiKeyHistory, ApiKeyHistoryEntry, ApiKeyHistoryFilter } from '../ports/api-key-history.js'
import type { ShowApiKey } from './show-api-key.js'

/** Lists the changes that match all filters, oldest first. Throws `ApiKeyNotFound` if the filter has a key ID that does not exist. */
export type ListApiKeyHistory = (filter: ApiKeyHistoryFilter) => Promise<readonly ApiKeyHistoryEntry[]>

export function makeListApiKeyHistory(ports: { showApiKey: ShowApiKey; apiKeyHistory: ApiKeyHistory }): ListApiKeyHistory {
  return async (filter) => {
    if (filter.keyId !== undefined) await ports.showApiKey(filter.keyId)
    return ports.apiKeyHistory.list(filter)
  }
}
