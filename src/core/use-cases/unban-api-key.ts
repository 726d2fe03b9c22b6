import type { StoredApiKey } from '../api-key.js'
import type { QuotaControl } from '../ports/quota-control.js'
import type { ShowApiKey } from './show-api-key.js'

/** Lifts the ban of a key and forgets its strikes and earlier bans. Throws `ApiKeyNotFound` or `StoreUnavailable`. */
export type UnbanApiKey = (keyId: string) => Promise<{ readonly key: StoredApiKey; readonly outcome: 'lifted' | 'not-banned' }>

export function makeUnbanApiKey(ports: { showApiKey: ShowApiKey; quotaControl: QuotaControl }): UnbanApiKey {
  return async (keyId) => {
    const key = await ports.showApiKey(keyId)
    return { key, outcome: await ports.quotaControl.unban(keyId) }
  }
}
