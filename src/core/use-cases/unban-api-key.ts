import type { StoredApiKey } from '../api-key.js'
import { StoreUnavailable } from '../errors.js'
import type { ApiKeyHistory } from '../ports/api-key-history.js'
import type { Clock } from '../ports/clock.js'
import type { QuotaControl } from '../ports/quota-control.js'
import type { ShowApiKey } from './show-api-key.js'

/** The ban is lifted, but the history may not contain the change. */
export class UnbanUnrecorded extends StoreUnavailable {
  constructor(
    readonly key: StoredApiKey,
    readonly outcome: 'lifted' | 'not-banned',
    { message, cause }: StoreUnavailable,
  ) {
    super(`${message}; the key is unbanned, but its history may not show it: repeat the command`, { cause })
  }
}

/**
 * Lifts the ban of a key and clears its strikes and ban history. Records the change also if the key is not banned: an earlier
 * attempt may have lifted the ban without recording it. `by` is the operator. Throws `ApiKeyNotFound` and `UnbanUnrecorded`.
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
      throw error instanceof StoreUnavailable ? new UnbanUnrecorded(key, outcome, error) : error
    }
    return { key, outcome }
  }
}
