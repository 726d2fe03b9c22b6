import type { Charge, KeyVersion, Quota, QuotaRules, Verdict } from '../quota.js'

/** The caller's record of the key is older than one in an earlier decision or announcement. Nothing was decided: read the record again and retry. */
export interface StaleKeyRecord {
  readonly kind: 'stale'
  /** The highest version that is known. */
  readonly knownVersion: number
}

/**
 * Decides like `decide` in `core/quota.ts`, on state that all replicas share, with the clock of the store.
 * A rejection is a return value. During an outage, the store decides from what this replica knows. It never throws, and never admits an
 * unlimited number of requests.
 */
export interface QuotaStore {
  /** Decides one request in one atomic step: concurrent requests with a key are decided one after the other. */
  take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<Verdict | StaleKeyRecord>

  /** Refunds one request, only in the windows of its charge and never below zero. Returns the quota after that. */
  refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota>
}
