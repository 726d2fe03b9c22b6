import type { Middleware } from '../pipeline/context.js'
import { Deadline } from '../pipeline/deadline.js'

/** Starts the deadline of the request, which later steps observe. A request that passes it gets 503. */
export function limitServiceTime(): Middleware {
  return async function startDeadline(ctx, next) {
    const deadline = new Deadline()
    ctx.state.deadline = deadline
    try {
      await next()
    } finally {
      deadline.end()
    }
  }
}
