import type { AddressQuota, FailedAuthentications } from '../../../core/ports/failed-authentications.js'
import type { Authenticate } from '../../../core/use-cases/authenticate.js'
import { clientAddress } from '../client-address.js'
import type { Middleware, RequestContext } from '../context.js'
import { HttpError } from '../http-error.js'
import { secondsUntil, setAddressQuota } from '../quota-headers.js'

/** Reports what the caller's address has left, on answers that no key is verified for. */
export type ShowAddressQuota = (ctx: RequestContext) => Promise<void>

export function makeShowAddressQuota(ports: { failedAuthentications: FailedAuthentications; trustedProxyHops: number }): ShowAddressQuota {
  return async (ctx) => setAddressQuota(ctx, await ports.failedAuthentications.peek(addressOf(ctx, ports.trustedProxyHops)))
}

/** Lets only verified keys pass. */
export function authenticate(deps: { authenticate: Authenticate; trustedProxyHops: number }): Middleware {
  return async function verifyKey(ctx, next) {
    const secret = sentSecret(ctx)
    const address = addressOf(ctx, deps.trustedProxyHops)
    const outcome = await deps.authenticate({ address, ...(secret === undefined ? {} : { secret }) })
    switch (outcome.kind) {
      case 'verified':
        ctx.state.key = outcome.key
        return next()
      case 'refused':
        setAddressQuota(ctx, outcome.quota)
        throw secret === undefined ? missingKey() : invalidKey()
      case 'locked-out':
        setAddressQuota(ctx, outcome.quota)
        throw lockedOut(outcome.quota)
    }
  }
}

/** Absent without an Authorization header, or with one of another scheme. Two headers are a key, and no valid one. */
function sentSecret(ctx: RequestContext): string | undefined {
  const sent = ctx.req.headersDistinct['authorization'] ?? []
  if (sent.length > 1) return ''
  return /^bearer +(.+)$/i.exec(sent[0] ?? '')?.[1]
}

function addressOf(ctx: RequestContext, trustedProxyHops: number): string {
  return clientAddress(ctx.req.socket.remoteAddress ?? '', ctx.get('X-Forwarded-For'), trustedProxyHops)
}

function missingKey(): HttpError {
  return new HttpError('missing_api_key', { headers: { 'WWW-Authenticate': 'Bearer realm="petstore"' } })
}

/** The same for malformed, unknown, expired and revoked keys. */
function invalidKey(): HttpError {
  return new HttpError('invalid_api_key', { headers: { 'WWW-Authenticate': 'Bearer realm="petstore", error="invalid_token"' } })
}

function lockedOut({ resetSeconds, nowMs }: AddressQuota): HttpError {
  return new HttpError('too_many_failed_authentications', { headers: { 'Retry-After': `${secondsUntil(resetSeconds, nowMs)}` } })
}
