import type { ChangedApiKey } from '../announce-change.js'
import { announceChange } from '../announce-change.js'
import { changeApiKey } from '../change-api-key.js'
import { ApiKeyRevoked } from '../errors.js'
import type { Plans, Subscription } from '../plan.js'
import { requireLimits } from '../plan.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'
import type { Clock } from '../ports/clock.js'
import type { QuotaControl } from '../ports/quota-control.js'
import type { Limits } from '../quota.js'

/**
 * Changes the plan of a key and removes the key's own limits unless the subscription contains limits. A key that already has the plan and the
 * limits stays unchanged. `by` is the operator. Throws `ApiKeyNotFound`, `ApiKeyRevoked` and `LimitsRequired`.
 */
export type ChangeApiKeyPlan = (keyId: string, subscription: Subscription, by: string) => Promise<ChangedApiKey>

export function makeChangeApiKeyPlan(ports: {
  apiKeyStore: ApiKeyStore
  quotaControl: QuotaControl
  clock: Clock
  plans: Plans
}): ChangeApiKeyPlan {
  return async (keyId, subscription, by) => {
    requireLimits(subscription, ports.plans)
    const changed = await changeApiKey(ports, keyId, by, ({ plan, limits, ...key }) => {
      if (key.revokedAtMs !== undefined) throw new ApiKeyRevoked(`API key ${keyId} is revoked, so its plan cannot be changed`)
      if (plan === subscription.plan && hasSameLimits(limits, subscription.limits)) return undefined
      const before = { plan, ...(limits ? { limits } : {}) }
      return { key: { ...key, ...subscription }, change: { action: 'plan-changed', before, after: subscription } }
    })
    return announceChange(ports.quotaControl, changed)
  }
}

function hasSameLimits(one: Limits | undefined, other: Limits | undefined): boolean {
  return one?.minute === other?.minute && one?.day === other?.day
}
