import type { KeyVersion, Charge, Quota, QuotaRules, Verdict } from '../quota.js'

/** The asker's record of the key is older than one that decided before. Nothing was decided: read the record anew and ask again. */
export interface Outdated {
  readonly kind: 'outdated'
}

/**
 * Decides as `decide` in `core/quota.ts` does, on state shared by all replicas. The clock is the store's own.
 * A rejection is an answer, not an error, and an outage is neither: the store then decides from what this replica knows, never unlimited.
 */
export interface QuotaStore {
  /** Decides one request in one atomic step: concurrent requests of a key are decided one after the other. */
  take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<Verdict | Outdated>

  /** Gives one request back, in the windows of its charge only and never below zero. Resolves to what the caller has now. */
  refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota>
}
