import type { FailedAuthentications } from '../../../core/ports/failed-authentications.js'
import { clientAddress } from './client-address.js'
import type { RequestContext } from './context.js'
import { setAddressQuota } from './quota-headers.js'

/** Reports what the caller's address has left, on answers that no key is verified for. */
export type ReportAddressQuota = (ctx: RequestContext) => Promise<void>

export function makeReportAddressQuota(ports: {
  failedAuthentications: FailedAuthentications
  trustedProxyHops: number
}): ReportAddressQuota {
  return async (ctx) => setAddressQuota(ctx, await ports.failedAuthentications.peek(toClientAddress(ctx, ports.trustedProxyHops)))
}

export function toClientAddress(ctx: RequestContext, trustedProxyHops: number): string {
  return clientAddress(ctx.req.socket.remoteAddress ?? '', ctx.get('X-Forwarded-For'), trustedProxyHops)
}
