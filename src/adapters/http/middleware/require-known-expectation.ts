import type { Middleware } from '../pipeline/context.js'
import { HttpError } from '../errors/http-error.js'

/** Rejects an expectation that this server cannot meet. Node's own 417 has no body. */
export function requireKnownExpectation(): Middleware {
  return async function requireExpectation(ctx, next) {
    const expectation = ctx.get('Expect')
    if (expectation && expectation.toLowerCase() !== '100-continue') throw new HttpError('expectation_failed')
    await next()
  }
}
