import type { StoredApiKey } from './api-key.js'
import { StoreUnavailable } from './errors.js'
import type { QuotaControl } from './ports/quota-control.js'

/** A key after a stored change. */
export interface ChangedApiKey {
  readonly key: StoredApiKey
  /** With the next request, or, if the change could not be announced, once replicas read the key's record again. */
  readonly takesEffect: 'at once' | 'within 10 s'
}

/** Announces a stored change to all replicas. */
export async function announceChange(quotaControl: QuotaControl, key: StoredApiKey): Promise<ChangedApiKey> {
  try {
    await quotaControl.announce(key.keyId, key.version)
    return { key, takesEffect: 'at once' }
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    return { key, takesEffect: 'within 10 s' }
  }
}
