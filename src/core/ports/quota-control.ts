import type { QuotaRules, QuotaUsage } from '../quota.js'

/** Quota operations for operators, on the state that all replicas share. Every method throws `StoreUnavailable` if that state is unavailable. */
export interface QuotaControl {
  /** From now on, no replica uses a record of the key that is older than `version`. A version lower than the announced one has no effect. */
  announce(keyId: string, version: number): Promise<void>

  /** Returns the usage of the key. Charges nothing. */
  usage(keyId: string, rules: QuotaRules): Promise<QuotaUsage>

  /**
   * Lifts the ban and forgets strikes and earlier bans. Usage stays. Returns `not-banned` if the key is not banned.
   * A replica that rejects the key from memory may do so for one more second.
   */
  unban(keyId: string): Promise<'lifted' | 'not-banned'>
}
