import type { AddressQuota } from '../../../core/address-quota.js'
import type { Caller } from '../../../core/ports/api-key-verifier.js'
import type { Rejection } from '../../../core/quota.js'
import { toKeyUsage } from '../../../core/key-usage.js'
import type { Admission, Admit } from '../../../core/use-cases/admit.js'
import type { OwnUsage, ShowOwnUsage } from '../../../core/use-cases/show-own-usage.js'
import type { Middleware, RequestContext } from '../pipeline/context.js'
import type { ErrorCode } from '../errors/error-catalogue.js'
import { HttpError } from '../errors/http-error.js'
import { computeSecondsUntil, setAddressQuotaHeaders, setKeyQuotaHeaders } from '../pipeline/quota-headers.js'
import { toClientAddress } from '../pipeline/report-address-quota.js'

export interface AdmissionDeps {
  readonly admit: Admit
  readonly showOwnUsage: ShowOwnUsage
  readonly trustedProxyHops: number
}

/**
 * Admits callers with a valid key and quota left, charges one request and sets the quota headers. An uncharged operation requires only a
 * valid key.
 */
export function admitCaller(deps: AdmissionDeps): Middleware {
  return async function admitRequest(ctx, next) {
    const credentials = { address: toClientAddress(ctx, deps.trustedProxyHops), ...readSecret(ctx) }
    const admit = ctx.state.route?.isUncharged ? deps.showOwnUsage : deps.admit
    const admission = await ctx.state.deadline.race<Admission | OwnUsage>((signal) => admit(credentials, signal))
    switch (admission.kind) {
      case 'missing':
        setAddressQuotaHeaders(ctx, admission.quota)
        throw makeMissingKeyError()
      case 'invalid':
        setAddressQuotaHeaders(ctx, admission.quota)
        throw makeInvalidKeyError()
      case 'locked-out':
        setAddressQuotaHeaders(ctx, admission.quota)
        throw toLockedOutError(admission.quota)
      case 'usage': {
        const { key, usage } = admission
        setCaller(ctx, admission)
        ctx.state.usage = toKeyUsage(key, usage)
        setKeyQuotaHeaders(ctx, usage.quota)
        return next()
      }
      case 'decided': {
        const { verdict, refund } = admission
        setCaller(ctx, admission)
        Object.assign(ctx.state, { verdict, refund })
        setKeyQuotaHeaders(ctx, verdict.quota, verdict.kind === 'banned' ? verdict.retryAfterSeconds : undefined)
        if (verdict.kind !== 'admitted') throw toRejectionError(verdict)
        return next()
      }
    }
  }
}

function setCaller(ctx: RequestContext, { key, secretExpiresAtMs }: Caller): void {
  Object.assign(ctx.state, { key, secretExpiresAtMs })
  if (secretExpiresAtMs !== undefined) ctx.res.setHeader('X-API-Key-Expires', new Date(secretExpiresAtMs).toUTCString())
}

/** Returns no secret if there is no Authorization header or it has another scheme. Two headers count as an invalid key. */
function readSecret(ctx: RequestContext): { readonly secret?: string } {
  const sent = ctx.req.headersDistinct['authorization'] ?? []
  if (sent.length > 1) return { secret: '' }
  const [, secret] = /^bearer +(.+)$/i.exec(sent[0] ?? '') ?? []
  return secret === undefined ? {} : { secret }
}

function makeMissingKeyError(): HttpError {
  return new HttpError('missing_api_key', { headers: { 'WWW-Authenticate': 'Bearer realm="petstore"' } })
}

/** Malformed, unknown, expired and revoked keys all get this error, so that it does not reveal which keys exist. */
function makeInvalidKeyError(): HttpError {
  return new HttpError('invalid_api_key', { headers: { 'WWW-Authenticate': 'Bearer realm="petstore", error="invalid_token"' } })
}

function toLockedOutError({ resetSeconds, nowMs }: AddressQuota): HttpError {
  return new HttpError('too_many_failed_authentications', { headers: { 'Retry-After': `${computeSecondsUntil(resetSeconds, nowMs)}` } })
}

function toRejectionError(rejection: Rejection): HttpError {
  return new HttpError(toErrorCode(rejection), { headers: { 'Retry-After': `${rejection.retryAfterSeconds}` } })
}

function toErrorCode({ kind, window }: Rejection): ErrorCode {
  switch (kind) {
    case 'banned':
      return 'key_temporarily_banned'
    case 'exhausted':
      return window === 'day' ? 'daily_quota_exceeded' : 'rate_limit_exceeded'
  }
}
