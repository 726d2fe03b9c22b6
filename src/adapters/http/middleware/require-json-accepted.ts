import type { Middleware } from '../pipeline/context.js'
import { HttpError } from '../errors/http-error.js'

/** TestResponses are JSON only: who excludes that gets none. */
export function requireJsonAccepted(): Middleware {
  return async function requireAcceptableJson(ctx, next) {
    // JSON has no charset parameter (RFC 8259, 11), so that one is asked for makes no difference.
    ctx.req.headers.accept &&= ctx.req.headers.accept.replaceAll(/;\s*charset=[^;,]*/gi, '')
    if (!ctx.accepts('application/json')) throw new HttpError('not_acceptable')
    await next()
  }
}
