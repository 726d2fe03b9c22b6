import type { Context } from 'koa'
import type { Logger } from 'pino'
import type { Middleware } from '../pipeline/context.js'
import { respondWithJson } from '../pipeline/context.js'
import { errorBody } from '../errors/error-catalogue.js'
import { toHttpError } from '../errors/http-error.js'
import { isApiPath } from '../pipeline/routing.js'
import type { ReportAddressQuota } from '../pipeline/report-address-quota.js'

/** The one edge at which thrown errors become answers. Headers set before the error stay: Koa's own error path would drop them. */
export function handleErrors({ log, reportAddressQuota }: { log: Logger; reportAddressQuota: ReportAddressQuota }): Middleware {
  return async function handleError(ctx, next) {
    try {
      await next()
    } catch (thrown) {
      const error = toHttpError(thrown)
      if (error.status >= 500 && error.cause) log.error({ requestId: ctx.state.requestId, err: error.cause }, error.code)
      ctx.state.errorCode = error.code
      ctx.set(error.headers)
      respondWithJson(ctx, error.status, JSON.stringify(errorBody(error.code, error.message)))
      // No error is without quota headers, also where it came before there was a quota to report: but for what a page itself answers,
      // for health must not depend on what counts.
      const { found } = ctx.state
      const isPage = found?.methodAllowed && !isApiPath(found.template)
      if (!isPage && !ctx.response.get('X-RateLimit-Limit')) {
        await reportAddressQuota(ctx).catch((err: unknown) => log.error({ requestId: ctx.state.requestId, err }, 'quota headers missing'))
      }
    }
  }
}

/** Logs errors outside the error boundary, such as those while a response is being sent. A client that disconnects is not an error. */
export function logStrayErrors(log: Logger): (err: unknown, ctx?: Context) => void {
  return function logStrayError(err, ctx) {
    if (ctx?.req.socket.destroyed) log.debug({ err }, 'the client disconnected')
    else log.error({ err }, 'error outside the error boundary')
  }
}
