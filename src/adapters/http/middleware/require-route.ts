import type { Middleware } from '../pipeline/context.js'
import { HttpError } from '../errors/http-error.js'

/** 404, then 405: behind authentication and quota, for they are requests that count like any other. */
export function requireRoute(): Middleware {
  return async function requireKnownRoute(ctx, next) {
    const { found } = ctx.state
    if (!found) throw new HttpError('not_found')
    if (!found.methodAllowed) throw new HttpError('method_not_allowed', { headers: { Allow: found.allow } })
    await next()
  }
}
