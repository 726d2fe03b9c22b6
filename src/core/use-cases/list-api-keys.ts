import type { ApiKeyState, StoredApiKey } from '../api-key.js'
import { getApiKeyState } from '../api-key.js'
import type { PlanName } from '../plan.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'
import type { Clock } from '../ports/clock.js'

export interface ApiKeyFilter {
  readonly owner?: string
  readonly plan?: PlanName
  readonly state?: ApiKeyState
}

/** Oldest first. */
export type ListApiKeys = (filter: ApiKeyFilter) => Promise<readonly StoredApiKey[]>

export function makeListApiKeys({ apiKeyStore, clock }: { apiKeyStore: ApiKeyStore; clock: Clock }): ListApiKeys {
  return async ({ state, ...storeFilter }) => {
    const keys = await apiKeyStore.list(storeFilter)
    const nowMs = clock.nowMs()
    return keys.filter((key) => state === undefined || getApiKeyState(key, nowMs) === state)
  }
}
