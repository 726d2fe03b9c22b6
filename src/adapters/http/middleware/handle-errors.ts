import type { Context } from 'koa'
import type { Logger } from 'pino'
import { StoreUnavailable } from '../../../core/errors.js'
import type { Middleware } from '../pipeline/context.js'
import { respondWithJson } from '../pipeline/respond-with-json.js'
import { setHeaders } from '../pipeline/set-headers.js'
import { toErrorBody } from '../errors/error-catalogue.js'
import { toErrorResponse } from '../errors/http-error.js'
import { isApiPath } from '../operations/operation.js'
import type { ReportAddressQuota } from '../pipeline/report-address-quota.js'

/** The only place that turns thrown errors into responses. Koa's own error handler would remove the headers that were set before the error. */
export function handleErrors({ log, reportAddressQuota }: { log: Logger; reportAddressQuota: ReportAddressQuota }): Middleware {
  return async function handleError(ctx, next) {
    try {
      await next()
    } catch (thrown) {
      const error = toErrorResponse(thrown)
      if (error.cause instanceof StoreUnavailable) ctx.state.outage = error.cause.reason
      else if (error.status >= 500 && error.cause) log.error({ requestId: ctx.state.requestId, err: error.cause }, error.code)
      ctx.state.errorCode = error.code
      setHeaders(ctx, error.headers)
      respondWithJson(ctx, error.status, JSON.stringify(toErrorBody(error.code, error.message)))
      // Every error has quota headers, even if it was thrown before a quota was known. The exception is the handler of a public route:
      // health checks must not depend on the quota store.
      const { route } = ctx.state
      const isFromPublicRoute = route?.respond && !isApiPath(route.template)
      if (!isFromPublicRoute && !ctx.res.hasHeader('X-RateLimit-Limit')) {
        await reportAddressQuota(ctx).catch((err: unknown) =>
          log.error({ requestId: ctx.state.requestId, err }, 'failed to set the quota headers'),
        )
      }
    }
  }
}

/** Logs errors outside the error boundary, such as those while a response is being sent. A client that disconnects is not an error. */
export function makeErrorLogger(log: Logger): (err: unknown, ctx?: Context) => void {
  return function logUnhandledError(err, ctx) {
    if (ctx?.req.socket.destroyed) log.debug({ err }, 'the client disconnected')
    else log.error({ err }, 'error outside the error boundary')
  }
}
