import { randomUUID } from 'node:crypto'
import type { Middleware } from '../pipeline/context.js'

/** Whatever holds an API key is not fit for logs. */
const ACCEPTED_ID = /^(?!.*pst_live_)[A-Za-z0-9._-]{1,64}$/

/** Takes over the request id of a proxy or client where it is fit for logs, else makes one, and returns it on every answer. */
export function identifyRequest(): Middleware {
  return async function identify(ctx, next) {
    const sent = ctx.get('X-Request-Id')
    ctx.state.requestId = ACCEPTED_ID.test(sent) ? sent : randomUUID()
    ctx.set('X-Request-Id', ctx.state.requestId)
    await next()
  }
}
