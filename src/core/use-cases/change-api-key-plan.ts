import type { ChangedApiKey } from '../announce-change.js'
import { announceChange } from '../announce-change.js'
import { ApiKeyNotFound } from '../errors.js'
import type { Plans, Subscription } from '../plan.js'
import { requireLimits } from '../plan.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'
import type { QuotaControl } from '../ports/quota-control.js'

/** Limits of its own that the key had before are gone unless given again. Throws `ApiKeyNotFound` and `LimitsRequired`. */
export type ChangeApiKeyPlan = (keyId: string, subscription: Subscription) => Promise<ChangedApiKey>

export function makeChangeApiKeyPlan(ports: { apiKeyStore: ApiKeyStore; quotaControl: QuotaControl; plans: Plans }): ChangeApiKeyPlan {
  return async (keyId, subscription) => {
    requireLimits(subscription, ports.plans)
    const key = await ports.apiKeyStore.changePlan(keyId, subscription)
    if (!key) throw new ApiKeyNotFound(`No API key has the id ${keyId}`)
    return announceChange(ports.quotaControl, key)
  }
}
