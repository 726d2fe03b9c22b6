import type { Logger } from 'pino'
import type { Middleware } from '../pipeline/context.js'
import type { ErrorCode } from '../errors/error-catalogue.js'
import { makeForwardedForWarning } from '../pipeline/forwarded-for-warning.js'
import type { Metrics } from '../admin/metrics.js'

const AUTHENTICATION_FAILURES = new Set<ErrorCode>(['missing_api_key', 'invalid_api_key', 'too_many_failed_authentications'])

/** Logs and measures each request. Logs no secret, no body and no path, only the path's template. */
export function logRequests(deps: { log: Logger; metrics: Metrics; trustedProxyHops: number }): Middleware {
  const { log, metrics } = deps
  const warnOfForwardedFor = makeForwardedForWarning(deps)
  return async function logRequest(ctx, next) {
    const startedMs = performance.now()
    warnOfForwardedFor(ctx.req)
    await next()
    const elapsedMs = performance.now() - startedMs
    const { requestId, route, key, verdict, errorCode } = ctx.state
    const request = { method: ctx.method, route: route?.template ?? 'none', status: ctx.status }
    log.info({ requestId, keyId: key?.keyId, ...request, code: errorCode, ms: Math.round(elapsedMs * 10) / 10 }, 'request')

    metrics.countRequest(request, elapsedMs)
    if (errorCode && AUTHENTICATION_FAILURES.has(errorCode)) metrics.countUnauthenticated(errorCode)
    if (key && verdict) metrics.countVerdict(key.plan, verdict)
    if (route?.deprecatedOperation) metrics.countDeprecatedRequest(route.deprecatedOperation)
  }
}
