import type { ChangeResult } from './change-api-key.js'
import { StoreUnavailable } from './errors.js'
import type { QuotaControl } from './ports/quota-control.js'

/** A key after its version was announced. */
export interface ChangedApiKey extends ChangeResult {
  /** `at once`: from the next request on. `within 10 s`: Redis was unavailable, so replicas use cached records until these expire. */
  readonly takesEffect: 'at once' | 'within 10 s'
}

/** Announces the version of the key to all replicas, also if the key stayed unchanged: the announcement of an earlier change may be lost. */
export async function announceChange(quotaControl: QuotaControl, result: ChangeResult): Promise<ChangedApiKey> {
  try {
    await quotaControl.announce(result.key.keyId, result.key.version)
    return { ...result, takesEffect: 'at once' }
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    return { ...result, takesEffect: 'within 10 s' }
  }
}
