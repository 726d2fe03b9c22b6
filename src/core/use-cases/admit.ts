import type { ApiKey } from '../api-key.js'
import type { Plans } from '../plan.js'
import { quotaRulesFor } from '../plan.js'
import type { ApiKeyLookup } from '../ports/api-key-lookup.js'
import type { QuotaStore, StaleKeyRecord } from '../ports/quota-store.js'
import type { QuotaRules, Verdict } from '../quota.js'
import type { Authenticate, Authentication, Credentials } from './authenticate.js'

export type Admission =
  | Exclude<Authentication, { readonly kind: 'verified' }>
  /** A verified key, and what its quota says to the request. `rules` are those that decided, for a refund. */
  | { readonly kind: 'decided'; readonly key: ApiKey; readonly rules: QuotaRules; readonly verdict: Verdict }

/** Verifies the caller and charges one request. */
export type Admit = (credentials: Credentials) => Promise<Admission>

export function makeAdmit(ports: { authenticate: Authenticate; apiKeys: ApiKeyLookup; quotas: QuotaStore; plans: Plans }): Admit {
  const { authenticate, apiKeys, quotas, plans } = ports

  return async (credentials) => {
    const known = await authenticate(credentials)
    if (known.kind !== 'verified') return known
    const { key } = known
    const rules = quotaRulesFor(key, plans)
    const verdict = await quotas.take(key.keyId, rules, { version: key.version })
    if (verdict.kind !== 'stale') return { kind: 'decided', key, rules, verdict }

    apiKeys.forget(key.secretHash)
    const reread = await authenticate(credentials)
    return reread.kind === 'verified' ? decideAnew(reread.key) : reread
  }

  /** The record that was just read holds, even where the store of keys was put back to an earlier state. */
  async function decideAnew(key: ApiKey): Promise<Admission> {
    const rules = quotaRulesFor(key, plans)
    const verdict = decided(await quotas.take(key.keyId, rules, { version: key.version, justRead: true }))
    return { kind: 'decided', key, rules, verdict }
  }
}

function decided(verdict: Verdict | StaleKeyRecord): Verdict {
  if (verdict.kind === 'stale') throw new Error('A quota store called a fresh record stale')
  return verdict
}
