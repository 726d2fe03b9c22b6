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
