import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import type { KeyVersion, QuotaRules, Verdict } from '../../src/core/quota.js'

/** Takes for a key of which only one record was ever known, so that it cannot be outdated. */
export async function takeOne(
  quotas: QuotaStore,
  keyId: string,
  rules: QuotaRules,
  keyVersion: KeyVersion = { version: 1 },
): Promise<Verdict> {
  const verdict = await quotas.take(keyId, rules, keyVersion)
  if (verdict.kind === 'outdated') throw new Error(`The record of ${keyId} is outdated`)
  return verdict
}
