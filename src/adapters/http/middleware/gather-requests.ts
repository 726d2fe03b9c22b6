import { setImmediate } from 'node:timers/promises'
import type { Middleware } from '../pipeline/context.js'

/**
 * Delays each request until the end of the current turn of the event loop, and then resumes all waiting requests in one callback. Under load,
 * each later step runs for many requests in a row, and they share calls to Redis and MongoDB, which saves CPU time. If no other event is pending,
 * the request resumes at once.
 */
export function gatherRequests(): Middleware {
  let endOfTurn: Promise<void> | undefined
  return async function waitForEndOfTurn(_ctx, next) {
    endOfTurn ??= setImmediate().then(() => {
      endOfTurn = undefined
    })
    await endOfTurn
    return next()
  }
}
