import type { StoredApiKey } from './api-key.js'
import { StoreUnavailable } from './errors.js'
import type { QuotaControl } from './ports/quota-control.js'

/** A key after a change that is stored. */
export interface ChangedApiKey {
  readonly key: StoredApiKey
  /** From the next request on, or, where the replicas could not be told, when they read the key's record again: within 10 s. */
  readonly takesEffect: 'at once' | 'within 10 s'
}

/** Tells the replicas of a change that is stored already. */
export async function announceChange(quotaControl: QuotaControl, key: StoredApiKey): Promise<ChangedApiKey> {
  try {
    await quotaControl.announce(key.keyId, key.version)
    return { key, takesEffect: 'at once' }
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    return { key, takesEffect: 'within 10 s' }
  }
}
