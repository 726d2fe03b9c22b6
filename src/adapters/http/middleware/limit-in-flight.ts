import type { Middleware } from '../context.js'
import { HttpError } from '../http-error.js'

/** Rejects requests beyond `maxInFlight` at a time with 503 at once, before they are authenticated and charged. */
export function limitInFlight(maxInFlight: number): Middleware {
  let inFlight = 0
  return async function limitConcurrency(_ctx, next) {
    if (inFlight >= maxInFlight) {
      throw new HttpError('service_unavailable', {
        message: 'The service has reached its limit of concurrent requests; retry after the time in Retry-After.',
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
