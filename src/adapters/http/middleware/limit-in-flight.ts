import type { Metrics } from '../admin/metrics.js'
import type { Middleware } from '../pipeline/context.js'
import { HttpError } from '../errors/http-error.js'

/** Rejects a request with 503 if `maxInFlight` others are in flight, before it is authenticated and charged. */
export function limitInFlight({ maxInFlight, metrics }: { maxInFlight: number; metrics: Metrics }): Middleware {
  let inFlight = 0
  metrics.collectInFlight(() => inFlight)
  return async function limitRequestsInFlight(_ctx, next) {
    if (inFlight >= maxInFlight) {
      metrics.overloadRejections.inc()
      throw new HttpError('service_unavailable', {
        message: 'The service has reached its limit of concurrent requests. Retry after the number of seconds in Retry-After.',
        headers: { 'Retry-After': '1' },
      })
    }
    inFlight += 1
    try {
      await next()
    } finally {
      inFlight -= 1
    }
  }
}
