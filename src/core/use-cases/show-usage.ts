import type { StoredApiKey } from '../api-key.js'
import type { Plans } from '../plan.js'
import { toQuotaRules } from '../plan.js'
import type { QuotaControl } from '../ports/quota-control.js'
import type { QuotaUsage } from '../quota.js'
import type { ShowApiKey } from './show-api-key.js'

/** Throws `ApiKeyNotFound` or `StoreUnavailable`. */
export type ShowUsage = (keyId: string) => Promise<{ readonly key: StoredApiKey; readonly usage: QuotaUsage }>

export function makeShowUsage(ports: { showApiKey: ShowApiKey; quotaControl: QuotaControl; plans: Plans }): ShowUsage {
  return async (keyId) => {
    const key = await ports.showApiKey(keyId)
    return { key, usage: await ports.quotaControl.usage(keyId, toQuotaRules(key, ports.plans)) }
  }
}
