import type { FailedAuthentications } from '../../../core/ports/failed-authentications.js'
import { resolveClientAddress } from './client-address.js'
import type { RequestContext } from './context.js'
import { setAddressQuotaHeaders } from './quota-headers.js'

/** Sets the quota headers of the client's IP address, for responses without a verified key. */
export type ReportAddressQuota = (ctx: RequestContext) => Promise<void>

export function makeReportAddressQuota(ports: {
  failedAuthentications: FailedAuthentications
  trustedProxyHops: number
}): ReportAddressQuota {
  return async (ctx) => setAddressQuotaHeaders(ctx, await ports.failedAuthentications.peek(toClientAddress(ctx, ports.trustedProxyHops)))
}

export function toClientAddress(ctx: RequestContext, trustedProxyHops: number): string {
  return resolveClientAddress(ctx.req.socket.remoteAddress ?? '', ctx.get('X-Forwarded-For'), trustedProxyHops)
}
