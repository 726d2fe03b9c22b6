import type { AddressQuota } from '../../../core/address-quota.js'
import type { Rejection } from '../../../core/quota.js'
import type { Admit } from '../../../core/use-cases/admit.js'
import type { Middleware, RequestContext } from '../pipeline/context.js'
import type { ErrorCode } from '../errors/error-catalogue.js'
import { HttpError } from '../errors/http-error.js'
import { computeSecondsUntil, setAddressQuotaHeaders, setKeyQuotaHeaders } from '../pipeline/quota-headers.js'
import { toClientAddress } from '../pipeline/report-address-quota.js'

/** Admits callers with a valid key and quota left, charges one request and sets the quota headers. */
export function admitCaller(deps: { admit: Admit; trustedProxyHops: number }): Middleware {
  return async function admitRequest(ctx, next) {
    const credentials = { address: toClientAddress(ctx, deps.trustedProxyHops), ...readSecret(ctx) }
    const admission = await ctx.state.deadline.race((signal) => deps.admit(credentials, signal))
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
      case 'decided': {
        const { key, secretExpiresAtMs, verdict, refund } = admission
        Object.assign(ctx.state, { key, secretExpiresAtMs, verdict, refund })
        if (secretExpiresAtMs !== undefined) ctx.res.setHeader('X-API-Key-Expires', new Date(secretExpiresAtMs).toUTCString())
        setKeyQuotaHeaders(ctx, verdict.quota, verdict.kind === 'banned' ? verdict.retryAfterSeconds : undefined)
        if (verdict.kind !== 'admitted') throw toRejectionError(verdict)
        return next()
      }
    }
  }
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
