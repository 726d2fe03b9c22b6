import type { QuotaRules, QuotaUsage } from '../quota.js'

/** What operators do with quotas, on the state that all replicas share. Every method throws `StoreUnavailable` when it cannot be reached. */
export interface QuotaControl {
  /** From now on no replica decides by a record of the key that is older than `version`. */
  announce(keyId: string, version: number): Promise<void>

  /** What the key has and had; nothing is counted. */
  usage(keyId: string, rules: QuotaRules): Promise<QuotaUsage>

  /** Ends a ban, and forgets strikes and earlier bans; what was used stays used. `not-banned` when no ban holds, and the rest is done all the same. */
  unban(keyId: string): Promise<'lifted' | 'not-banned'>
}
