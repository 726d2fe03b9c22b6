import type { Logger } from 'pino'
import type { Middleware } from '../pipeline/context.js'
import type { ErrorCode } from '../errors/error-catalogue.js'
import type { Metrics } from '../admin/metrics.js'
import { toClientAddress } from '../pipeline/report-address-quota.js'
import { parseTraceId } from '../pipeline/trace-id.js'

/** The failures that count toward the failure limit of an IP address, and those that it causes. */
const FAILED_AUTHENTICATIONS = new Set<ErrorCode | undefined>(['invalid_api_key', 'too_many_failed_authentications'])
const UNAUTHENTICATED = new Set<ErrorCode | undefined>(['missing_api_key', ...FAILED_AUTHENTICATIONS])

/** Logged once per process: behind a proxy that is not trusted, all clients share the failure limit of the proxy's IP address. */
const IGNORED_FORWARDED_FOR =
  'A request has an X-Forwarded-For header, but TRUSTED_PROXY_HOPS is 0, so the header is ignored. If a proxy or load balancer is in front of the service, set TRUSTED_PROXY_HOPS to the number of proxies: otherwise all clients share one failure limit.'

/** Logs and measures each request. Logs no secret, no body and no path, only the path's template, and the client's IP address only if authentication failed. */
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
    const { requestId, route, key, secretExpiresAtMs, verdict, errorCode, outage } = ctx.state
    const request = { method: ctx.method, route: route?.template ?? 'none', status: ctx.status }
    const clientAddress = FAILED_AUTHENTICATIONS.has(errorCode) ? toClientAddress(ctx, trustedProxyHops) : undefined
    const traceId = ctx.state.traceId ?? parseTraceId(ctx.headers['traceparent'])
    const ms = Math.round(elapsedMs * 10) / 10
    const oldSecret = secretExpiresAtMs === undefined ? undefined : true
    const caller = { keyId: key?.keyId, oldSecret }
    log.info({ requestId, traceId, ...caller, ...request, code: errorCode, clientAddress, reason: outage, ms }, 'request')

    metrics.countRequest(request, elapsedMs)
    if (errorCode && UNAUTHENTICATED.has(errorCode)) metrics.countUnauthenticated(errorCode)
    if (key && verdict) metrics.countVerdict(key.plan, verdict)
    if (oldSecret) metrics.oldSecretRequests.inc()
    if (route?.deprecatedOperation) metrics.countDeprecatedRequest(route.deprecatedOperation)
  }
}
