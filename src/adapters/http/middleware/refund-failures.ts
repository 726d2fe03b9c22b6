import type { Middleware } from '../pipeline/context.js'
import { HttpError, toErrorResponse } from '../errors/http-error.js'
import { setKeyQuotaHeaders } from '../pipeline/quota-headers.js'

/** Refunds requests that fail with a 5xx. */
export function refundFailures(): Middleware {
  return async function refundFailure(ctx, next) {
    try {
      await next()
    } catch (thrown) {
      const { refund } = ctx.state
      if (refund && toErrorResponse(thrown).status >= 500) {
        setKeyQuotaHeaders(ctx, await refund().catch((refundError: unknown) => Promise.reject(combineErrors(thrown, refundError))))
      }
      throw thrown
    }
  }
}

/** The response reports the error of the request. The log contains both errors. */
function combineErrors(thrown: unknown, refundError: unknown): HttpError {
  const { code, message, headers } = toErrorResponse(thrown)
  return new HttpError(code, {
    message,
    headers,
    cause: new AggregateError([thrown, refundError], 'A request and its refund failed'),
  })
}
