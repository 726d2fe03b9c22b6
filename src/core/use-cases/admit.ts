import type { Cancellation } from '../cancellation.js'
import type { ApiKey } from '../api-key.js'
import type { Plans } from '../plan.js'
import { toQuotaRules } from '../plan.js'
import type { ApiKeyVerifier } from '../ports/api-key-verifier.js'
import type { QuotaStore } from '../ports/quota-store.js'
import type { Quota, QuotaRules, Verdict } from '../quota.js'
import type { Authenticate, Credentials, FailedAuthentication } from './authenticate.js'
import { runWithCurrentRecord } from './authenticate.js'

/** The decision on a request with a verified key. */
export interface DecidedRequest {
  readonly kind: 'decided'
  /** The verified key of the caller. */
  readonly key: ApiKey
  readonly verdict: Verdict
  /**
   * Refunds the request and resolves to the quota after the refund. Absent if nothing was charged: for a rejection, or a request that only
   * shadow mode admits.
   */
  readonly refund?: () => Promise<Quota>
}

export type Admission = FailedAuthentication | DecidedRequest

/**
 * Authenticates the caller and charges one request. If the signal is aborted, throws its reason: starts no charge, and
 * refunds one that is in flight.
 */
export type Admit = (credentials: Credentials, signal?: Cancellation) => Promise<Admission>

export function makeAdmit(ports: { authenticate: Authenticate; apiKeyVerifier: ApiKeyVerifier; quotas: QuotaStore; plans: Plans }): Admit {
  const { quotas, plans } = ports

  return (credentials, signal) =>
    runWithCurrentRecord<DecidedRequest>(ports, { credentials, signal }, async (key, keyVersion) => {
      const rules = toQuotaRules(key, plans)
      const verdict = await quotas.take(key.keyId, rules, keyVersion)
      return verdict.kind === 'stale' ? verdict : toDecided(key, rules, verdict, signal)
    })

  async function toDecided(key: ApiKey, rules: QuotaRules, verdict: Verdict, signal?: Cancellation): Promise<DecidedRequest> {
    if (!('charge' in verdict)) return { kind: 'decided', key, verdict }
    const refund = () => quotas.refund(key.keyId, verdict.charge, rules)
    if (signal?.aborted) await refund()
    signal?.throwIfAborted()
    return { kind: 'decided', key, verdict, refund }
  }
}
