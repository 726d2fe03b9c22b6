import type { Cancellation } from '../cancellation.js'
import type { Plans } from '../plan.js'
import { toQuotaRules } from '../plan.js'
import type { ApiKeyVerifier, Caller } from '../ports/api-key-verifier.js'
import type { QuotaStore } from '../ports/quota-store.js'
import type { Quota, QuotaRules, Verdict } from '../quota.js'
import type { Authenticate, Credentials, FailedAuthentication } from './authenticate.js'
import { runWithCurrentRecord } from './authenticate.js'

/** The decision on a request with a verified key. */
export interface DecidedRequest extends Caller {
  readonly kind: 'decided'
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
    runWithCurrentRecord<DecidedRequest>(ports, { credentials, signal }, async (caller, keyVersion) => {
      const rules = toQuotaRules(caller.key, plans)
      const verdict = await quotas.take(caller.key.keyId, rules, keyVersion)
      return verdict.kind === 'stale' ? verdict : toDecided(caller, rules, verdict, signal)
    })

  async function toDecided(caller: Caller, rules: QuotaRules, verdict: Verdict, signal?: Cancellation): Promise<DecidedRequest> {
    if (!('charge' in verdict)) return { ...caller, kind: 'decided', verdict }
    const refund = () => quotas.refund(caller.key.keyId, verdict.charge, rules)
    if (signal?.aborted) await refund()
    signal?.throwIfAborted()
    return { ...caller, kind: 'decided', verdict, refund }
  }
}
