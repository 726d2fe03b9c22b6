import type { StoredApiKey } from '../api-key.js'
import { StoreUnavailable } from '../errors.js'
import type { ApiKeyHistory } from '../ports/api-key-history.js'
import type { Clock } from '../ports/clock.js'
import type { QuotaControl } from '../ports/quota-control.js'
import type { ShowApiKey } from './show-api-key.js'

/**
 * Lifts the ban of a key and clears its strikes and ban history. `by` is the operator. Throws `ApiKeyNotFound`, and `StoreUnavailable` with an
 * explanation if the ban is lifted but the history does not contain the change.
 */
export type UnbanApiKey = (keyId: string, by: string) => Promise<{ readonly key: StoredApiKey; readonly outcome: 'lifted' | 'not-banned' }>

export function makeUnbanApiKey(ports: {
  showApiKey: ShowApiKey
  quotaControl: QuotaControl
  apiKeyHistory: ApiKeyHistory
  clock: Clock
}): UnbanApiKey {
  return async (keyId, by) => {
    const key = await ports.showApiKey(keyId)
    const outcome = await ports.quotaControl.unban(keyId)
    const values = { before: { isBanned: outcome === 'lifted' }, after: { isBanned: false } }
    try {
      await ports.apiKeyHistory.add(keyId, { atMs: ports.clock.nowMs(), by, action: 'unbanned', ...values })
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      const { message, cause } = error
      throw new StoreUnavailable(`${message}; the key is unbanned, but its history may not show it: repeat the command`, { cause })
    }
    return { key, outcome }
  }
}
