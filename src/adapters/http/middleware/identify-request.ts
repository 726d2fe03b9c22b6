import { randomUUID } from 'node:crypto'
import type { Middleware } from '../pipeline/context.js'

/** Logs must not contain API keys, so an ID that looks like one is not accepted. */
const ACCEPTED_ID = /^(?!.*pst_live_)[A-Za-z0-9._-]{1,64}$/

/** Sends `X-Request-Id` with every response: the ID that the client or a proxy sent, if it may be logged, or a new one. */
export function identifyRequest(): Middleware {
  return function identify(ctx, next) {
    const sent = ctx.get('X-Request-Id')
    ctx.state.requestId = ACCEPTED_ID.test(sent) ? sent : randomUUID()
    ctx.res.setHeader('X-Request-Id', ctx.state.requestId)
    return next()
  }
}
