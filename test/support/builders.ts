import type { ApiKey, OldSecret } from '../../src/core/api-key.js'
import type { ApiKeyChange } from '../../src/core/api-key-change.js'
import type { Order } from '../../src/core/order.js'
import type { Pet } from '../../src/core/pet.js'
import type { Plans } from '../../src/core/plan.js'
import type { BanRules, Limits, QuotaRules, QuotaState } from '../../src/core/quota.js'

export function aPet(overrides: Partial<Pet> = {}): Pet {
  return { id: 1n, name: 'Rex', categoryId: 7n, status: 'available', ...overrides }
}

export function anOrder(overrides: Partial<Order> = {}): Order {
  return { id: 1n, petId: 4n, quantity: 1, status: 'placed', complete: false, ...overrides }
}

/** The hash and the key ID depend on `name`, so keys with different names differ in both. */
export function anApiKey(name = 'one', overrides: Partial<ApiKey> = {}): ApiKey {
  return {
    keyId: `key_${name}`,
    secretHash: aSecretHash(name),
    hint: 'pst_live_…xY9z',
    owner: 'Acme',
    plan: 'free',
    createdAtMs: Date.UTC(2026, 10, 1, 8, 30, 15, 123),
    version: 1,
    ...overrides,
  }
}

export function anOldSecret(overrides: Partial<OldSecret> = {}): OldSecret {
  return { hash: aSecretHash('old'), hint: 'pst_live_…oLd1', expiresAtMs: Date.UTC(2030, 0, 1), ...overrides }
}

export function aChange(overrides: Partial<ApiKeyChange> = {}): ApiKeyChange {
  return { atMs: Date.UTC(2026, 10, 1, 8, 30, 15, 123), by: 'alice', action: 'plan-changed', before: {}, after: {}, ...overrides }
}

/** The first change in the history of a key. */
export function anIssue(overrides: Partial<ApiKeyChange> = {}): ApiKeyChange {
  return aChange({ action: 'issued', after: { plan: 'free', hint: 'pst_live_…xY9z' }, ...overrides })
}

/** Returns 64 hexadecimal digits that are unique for the name. */
export function aSecretHash(name: string): string {
  return Buffer.from(name).toString('hex').padStart(64, '0')
}

export function someBanRules(overrides: Partial<BanRules> = {}): BanRules {
  return { graceMs: 1000, minStrikes: 60, firstMs: 60_000, longestMs: 86_400_000, forgetAfterMs: 86_400_000, ...overrides }
}

/** The state of a key without a hash, as the quota script reads it. */
export const NO_QUOTA_STATE: QuotaState = {
  window: { minute: 0, day: 0 },
  used: { minute: 0, day: 0 },
  strikes: 0,
  bannedUntilMs: 0,
  banLevel: 0,
  unbannedAtMs: 0,
  keyVersion: 0,
}

export function someQuotaRules({
  limits,
  ...overrides
}: Partial<Omit<QuotaRules, 'limits'>> & { limits?: Partial<Limits> } = {}): QuotaRules {
  return { limits: { minute: 60, day: 1000, ...limits }, ban: someBanRules(), mode: 'enforce', ...overrides }
}

/** The plans of config/plans.json, unless overridden. */
export function somePlans(overrides: Partial<Plans['plans']> = {}): Plans {
  return {
    plans: {
      free: { limits: { minute: 60, day: 1000 }, mode: 'enforce' },
      pro: { limits: { minute: 300, day: 10_000 }, mode: 'enforce' },
      business: { limits: { minute: 1000, day: 100_000 }, mode: 'enforce' },
      enterprise: { mode: 'enforce' },
      ...overrides,
    },
    ban: someBanRules(),
    failedAuthenticationsPerMinute: 30,
  }
}

/** Returns the items in a random order, which is the same each time. */
export function shuffled<Item>(items: readonly Item[], seed = 20_261_123): Item[] {
  const result = [...items]
  let state = seed
  for (let last = result.length - 1; last > 0; last--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const other = state % (last + 1)
    ;[result[last], result[other]] = [result[other] as Item, result[last] as Item]
  }
  return result
}
