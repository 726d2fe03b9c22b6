import type { Middleware } from '../pipeline/context.js'
import { HttpError } from '../errors/http-error.js'
import { isApiPath } from '../pipeline/routing.js'
import type { ReportAddressQuota } from '../pipeline/report-address-quota.js'

/** The methods that any path allows: the response to `OPTIONS *`. */
const SERVER_METHODS = 'GET, HEAD, OPTIONS, POST'

/** OPTIONS needs no key and costs nothing: a browser's preflight cannot carry one. */
export function handleOptions({ reportAddressQuota }: { reportAddressQuota: ReportAddressQuota }): Middleware {
  return async function answerAllowedMethods(ctx, next) {
    const { found } = ctx.state
    if (ctx.method !== 'OPTIONS') return next()
    const allow = ctx.path === '*' ? SERVER_METHODS : found?.allow
    if (allow === undefined) throw new HttpError('not_found')
    if (isApiPath(ctx.path)) await reportAddressQuota(ctx)
    ctx.status = 204
    ctx.set('Allow', allow)
  }
}
