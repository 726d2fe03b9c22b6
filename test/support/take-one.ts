import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import type { Asking, QuotaRules, Verdict } from '../../src/core/quota.js'

/** Takes for a key of which only one record was ever known, so that it cannot be outdated. */
export async function takeOne(quotas: QuotaStore, keyId: string, rules: QuotaRules, asking: Asking = { generation: 1 }): Promise<Verdict> {
  const verdict = await quotas.take(keyId, rules, asking)
  if (verdict.kind === 'outdated') throw new Error(`The record of ${keyId} is outdated`)
  return verdict
}
