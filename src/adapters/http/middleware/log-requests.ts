import type { Logger } from 'pino'
import type { Middleware } from '../pipeline/context.js'
import type { ErrorCode } from '../errors/error-catalogue.js'
import type { Metrics } from '../admin/metrics.js'

const AUTHENTICATION_FAILURES = new Set<ErrorCode>(['missing_api_key', 'invalid_api_key', 'too_many_failed_authentications'])

/** Logged once per process: behind a proxy that is not trusted, all clients share the failure limit of the proxy's IP address. */
const IGNORED_FORWARDED_FOR =
  'A request has an X-Forwarded-For header, but TRUSTED_PROXY_HOPS is 0, so the header is ignored. If a proxy or load balancer is in front of the service, set TRUSTED_PROXY_HOPS to the number of proxies: otherwise all clients share one failure limit.'

/** Logs and measures each request. Logs no secret, no body and no path, only the path's template. */
export function logRequests({ log, metrics, trustedProxyHops }: { log: Logger; metrics: Metrics; trustedProxyHops: number }): Middleware {
  let mayWarn = trustedProxyHops === 0
  return async function logRequest(ctx, next) {
    const startedMs = performance.now()
    if (mayWarn && ctx.headers['x-forwarded-for'] !== undefined) {
      mayWarn = false
      log.warn(IGNORED_FORWARDED_FOR)
    }
    await next()
    const elapsedMs = performance.now() - startedMs
    const { requestId, route, key, verdict, errorCode, outage } = ctx.state
    const request = { method: ctx.method, route: route?.template ?? 'none', status: ctx.status }
    log.info({ requestId, keyId: key?.keyId, ...request, code: errorCode, reason: outage, ms: Math.round(elapsedMs * 10) / 10 }, 'request')

    metrics.countRequest(request, elapsedMs)
    if (errorCode && AUTHENTICATION_FAILURES.has(errorCode)) metrics.countUnauthenticated(errorCode)
    if (key && verdict) metrics.countVerdict(key.plan, verdict)
    if (route?.deprecatedOperation) metrics.countDeprecatedRequest(route.deprecatedOperation)
  }
}
