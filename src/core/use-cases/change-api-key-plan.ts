import type { ChangedApiKey } from '../announce-change.js'
import { announceChange } from '../announce-change.js'
import { ApiKeyNotFound, ApiKeyRevoked } from '../errors.js'
import type { Plans, Subscription } from '../plan.js'
import { requireLimits } from '../plan.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'
import type { QuotaControl } from '../ports/quota-control.js'

/**
 * Changes the plan of a key and removes the key's own limits unless the subscription contains limits. Throws `ApiKeyNotFound`,
 * `ApiKeyRevoked` and `LimitsRequired`.
 */
export type ChangeApiKeyPlan = (keyId: string, subscription: Subscription) => Promise<ChangedApiKey>

export function makeChangeApiKeyPlan(ports: { apiKeyStore: ApiKeyStore; quotaControl: QuotaControl; plans: Plans }): ChangeApiKeyPlan {
  return async (keyId, subscription) => {
    requireLimits(subscription, ports.plans)
    const key = await ports.apiKeyStore.changePlan(keyId, subscription)
    if (key) return announceChange(ports.quotaControl, key)
    if (!(await ports.apiKeyStore.findById(keyId))) throw new ApiKeyNotFound(keyId)
    throw new ApiKeyRevoked(`API key ${keyId} is revoked, so its plan cannot be changed`)
  }
}
