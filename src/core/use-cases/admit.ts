import type { Cancellation } from '../cancellation.js'
import type { ApiKey } from '../api-key.js'
import { StoreUnavailable } from '../errors.js'
import type { Plans } from '../plan.js'
import { toQuotaRules } from '../plan.js'
import type { ApiKeyVerifier } from '../ports/api-key-verifier.js'
import type { QuotaStore } from '../ports/quota-store.js'
import type { Quota, QuotaRules, Verdict } from '../quota.js'
import type { Authenticate, Authentication, Credentials } from './authenticate.js'

export type Admission =
  | Exclude<Authentication, { readonly kind: 'verified' }>
  | {
      readonly kind: 'decided'
      /** The verified key of the caller. */
      readonly key: ApiKey
      /** The end of the grace period, if the secret is the old one of a rotated key. */
      readonly secretExpiresAtMs?: number
      readonly verdict: Verdict
      /**
       * Refunds the request and resolves to the quota after the refund. Absent if nothing was charged: for a rejection, or a request that only
       * shadow mode admits.
       */
      readonly refund?: () => Promise<Quota>
    }

type VerifiedCaller = Extract<Authentication, { readonly kind: 'verified' }>

/** A key may change while its record is read again. */
const MAX_ATTEMPTS = 5

/**
 * Authenticates the caller and charges one request. If the signal is aborted, throws its reason: starts no charge, and
 * refunds one that is in flight.
 */
export type Admit = (credentials: Credentials, signal?: Cancellation) => Promise<Admission>

export function makeAdmit(ports: { authenticate: Authenticate; apiKeyVerifier: ApiKeyVerifier; quotas: QuotaStore; plans: Plans }): Admit {
  const { authenticate, apiKeyVerifier, quotas, plans } = ports

  return async (credentials, signal) => {
    let readSince: number | undefined
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const authentication = await authenticate(credentials, signal)
      if (authentication.kind !== 'verified') return authentication
      const { key } = authentication
      const rules = toQuotaRules(key, plans)
      signal?.throwIfAborted()
      const verdict = await quotas.take(key.keyId, rules, { version: key.version, ...(readSince === undefined ? {} : { readSince }) })
      if (verdict.kind !== 'stale') return toAdmission(authentication, rules, verdict, signal)
      // The record that is read next applies even if its version is lower: the key store may have been restored from a backup.
      readSince = verdict.knownVersion
      apiKeyVerifier.forget(credentials.secret ?? '')
    }
    throw new StoreUnavailable(`The API key changed during each of ${MAX_ATTEMPTS} reads`)
  }

  async function toAdmission(caller: VerifiedCaller, rules: QuotaRules, verdict: Verdict, signal?: Cancellation): Promise<Admission> {
    if (!('charge' in verdict)) return { ...caller, kind: 'decided', verdict }
    const refund = () => quotas.refund(caller.key.keyId, verdict.charge, rules)
    if (signal?.aborted) await refund()
    signal?.throwIfAborted()
    return { ...caller, kind: 'decided', verdict, refund }
  }
}
