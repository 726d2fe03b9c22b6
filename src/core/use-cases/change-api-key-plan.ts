import type { StoredApiKey } from '../api-key.js'
import { ApiKeyNotFound } from '../errors.js'
import type { Plans, Subscription } from '../plan.js'
import { requireLimits } from '../plan.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'

/** Limits of its own that the key had before are gone unless given again. Throws `ApiKeyNotFound` and `LimitsRequired`. */
export type ChangeApiKeyPlan = (keyId: string, subscription: Subscription) => Promise<StoredApiKey>

export function makeChangeApiKeyPlan({ apiKeyStore, plans }: { apiKeyStore: ApiKeyStore; plans: Plans }): ChangeApiKeyPlan {
  return async (keyId, subscription) => {
    requireLimits(subscription, plans)
    const key = await apiKeyStore.changePlan(keyId, subscription)
    if (!key) throw new ApiKeyNotFound(`No API key has the id ${keyId}`)
    return key
  }
}
