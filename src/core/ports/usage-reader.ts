import type { KeyVersion, QuotaRules, QuotaUsage } from '../quota.js'
import type { StaleKeyRecord } from './quota-store.js'

/** Reads the state on which a `QuotaStore` decides. */
export interface UsageReader {
  /**
   * Returns the usage of the key. Charges nothing. During an outage, returns what this replica knows and can still grant, and never throws.
   * If the caller's record of the key is stale, returns that instead.
   */
  readUsage(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<QuotaUsage | StaleKeyRecord>
}
