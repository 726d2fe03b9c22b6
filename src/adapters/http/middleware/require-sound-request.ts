import type { Middleware } from '../context.js'
import { HttpError } from '../http-error.js'

/** What Node would refuse by itself, without a body: an HTTP/1.1 request without Host, and an expectation that nobody can meet. */
export function requireSoundRequest(): Middleware {
  return async function requireHostAndKnownExpectation(ctx, next) {
    if (ctx.req.httpVersion === '1.1' && ctx.req.headers.host === undefined) {
      throw new HttpError('bad_request', { message: 'The Host header is required.' })
    }
    const expectation = ctx.get('Expect')
    if (expectation && expectation.toLowerCase() !== '100-continue') throw new HttpError('expectation_failed')
    await next()
  }
}

export function requireJsonAccepted(): Middleware {
  return async function requireAcceptableJson(ctx, next) {
    if (!ctx.accepts('application/json')) throw new HttpError('not_acceptable')
    await next()
  }
}
