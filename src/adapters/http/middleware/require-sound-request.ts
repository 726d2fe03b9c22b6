import type { Middleware } from '../context.js'
import { HttpError } from '../http-error.js'

/** What Node would refuse by itself, without a body: an HTTP/1.1 request without one Host, and an expectation that nobody can meet. */
export function requireSoundRequest(): Middleware {
  return async function requireHostAndKnownExpectation(ctx, next) {
    const hosts = ctx.req.headersDistinct['host']?.length ?? 0
    if (hosts > 1 || (hosts === 0 && ctx.req.httpVersion === '1.1')) {
      throw new HttpError('bad_request', { message: 'One Host header is required.' })
    }
    const expectation = ctx.get('Expect')
    if (expectation && expectation.toLowerCase() !== '100-continue') throw new HttpError('expectation_failed')
    await next()
  }
}

export function requireJsonAccepted(): Middleware {
  return async function requireAcceptableJson(ctx, next) {
    // JSON has no charset parameter (RFC 8259, 11), so that one is asked for makes no difference.
    ctx.req.headers.accept &&= ctx.req.headers.accept.replaceAll(/;\s*charset=[^;,]*/gi, '')
    if (!ctx.accepts('application/json')) throw new HttpError('not_acceptable')
    await next()
  }
}
