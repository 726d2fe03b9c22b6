import type { FailedAuthentications } from '../../../core/ports/failed-authentications.js'
import { clientAddress } from './client-address.js'
import type { RequestContext } from './context.js'
import { setAddressQuota } from './quota-headers.js'

/** Reports what the caller's address has left, on answers that no key is verified for. */
export type ShowAddressQuota = (ctx: RequestContext) => Promise<void>

export function makeShowAddressQuota(ports: { failedAuthentications: FailedAuthentications; trustedProxyHops: number }): ShowAddressQuota {
  return async (ctx) => setAddressQuota(ctx, await ports.failedAuthentications.peek(addressOf(ctx, ports.trustedProxyHops)))
}

export function addressOf(ctx: RequestContext, trustedProxyHops: number): string {
  return clientAddress(ctx.req.socket.remoteAddress ?? '', ctx.get('X-Forwarded-For'), trustedProxyHops)
}
