import type { QuotaStore } from '../../../core/ports/quota-store.js'
import type { Middleware } from '../pipeline/context.js'
import { HttpError, toHttpError } from '../errors/http-error.js'
import { setKeyQuota } from '../pipeline/quota-headers.js'

/** Gives the caller its request back when the failure is ours. */
export function refundFailures({ quotas }: { quotas: QuotaStore }): Middleware {
  return async function refundFailure(ctx, next) {
    try {
      await next()
    } catch (thrown) {
      const { key, rules, verdict } = ctx.state
      if (key && rules && verdict && 'charge' in verdict && toHttpError(thrown).status >= 500) {
        const refunding = quotas.refund(key.keyId, verdict.charge, rules)
        setKeyQuota(ctx, await refunding.catch((refundError: unknown) => Promise.reject(withBoth(thrown, refundError))))
      }
      throw thrown
    }
  }
}

/** The answer to the request's own failure; the log tells of both. */
function withBoth(thrown: unknown, refundError: unknown): HttpError {
  const { code, message, headers } = toHttpError(thrown)
  return new HttpError(code, {
    message,
    headers,
    cause: new AggregateError([thrown, refundError], 'A request failed, and so did its refund'),
  })
}
