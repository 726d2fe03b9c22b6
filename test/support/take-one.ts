import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import type { KeyVersion, QuotaRules, Verdict } from '../../src/core/quota.js'

/** Calls `take` with a record of the key that must not be stale. */
export async function takeOne(
  quotas: QuotaStore,
  keyId: string,
  rules: QuotaRules,
  keyVersion: KeyVersion = { version: 1 },
): Promise<Verdict> {
  const verdict = await quotas.take(keyId, rules, keyVersion)
  if (verdict.kind === 'stale') throw new Error(`The record of ${keyId} is stale`)
  return verdict
}
