import type { IncomingMessage } from 'node:http'

const brokenBodies = new WeakMap<IncomingMessage, AbortController>()

/**
 * Returns a signal that aborts, with the parser's error as the reason, if the rest of the request's body cannot be read although the
 * connection is open.
 */
export function getBrokenBodySignal(request: IncomingMessage): AbortSignal {
  return getController(request).signal
}

export function abortBrokenBody(request: IncomingMessage, reason: Error): void {
  getController(request).abort(reason)
}

function getController(request: IncomingMessage): AbortController {
  const controller = brokenBodies.get(request) ?? new AbortController()
  brokenBodies.set(request, controller)
  return controller
}
