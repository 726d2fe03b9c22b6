import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const brokenBodies = new WeakMap<IncomingMessage, AbortController>()

/** Aborts, with the parser's error as its reason, when the rest of the request's body cannot be read although the connection is open. */
export function brokenBodySignal(request: IncomingMessage): AbortSignal {
  return brokenBody(request).signal
}

function brokenBody(request: IncomingMessage): AbortController {
  const controller = brokenBodies.get(request) ?? new AbortController()
  brokenBodies.set(request, controller)
  return controller
}

/** What a failed parser leaves to be done on a connection. */
export type FailedMessage =
  /** The error is in the body of a request that has its response already, or gets it from its handler. */
  | 'body'
  /** The error is in front of any request that the server has seen: it needs a response of its own. */
  | 'head'

/** One client connection and the requests on it, which may be pipelined: responses leave in the order of their requests. */
export class Connection {
  #unfinished = 0
  #lastRequest: IncomingMessage | undefined
  #lastResponse: ServerResponse | undefined
  #hasFailed = false
  #closesSoon = false
  #wasCut = false
  #whenIdle: (() => void) | undefined

  constructor(readonly socket: Socket) {}

  /** Responses that are still to be finished. */
  get unfinished(): number {
    return this.#unfinished
  }

  get isBusy(): boolean {
    return this.#unfinished > 0
  }

  /** Whether `fail` was called. */
  get hasFailed(): boolean {
    return this.#hasFailed
  }

  /** Whether it was closed before a response was written in full. */
  get wasCut(): boolean {
    return this.isBusy || this.#wasCut
  }

  /** Whether a request has arrived in full and its response is still to be finished. */
  get isServing(): boolean {
    return this.isBusy && this.#lastRequest?.complete === true
  }

  /** Call for each request as soon as its head is read. */
  add(request: IncomingMessage, response: ServerResponse): void {
    this.#unfinished += 1
    this.#lastRequest = request
    this.#lastResponse = response
    // Node's parser drops what follows a request for an upgrade in the same segment.
    if (this.#closesSoon || request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    response.once('close', () => {
      this.#unfinished -= 1
      // Node calls a response finished also when the connection is destroyed under it.
      if (this.socket.destroyed && !this.socket.writableFinished) this.#wasCut = true
      if (!this.isBusy) this.#whenIdle?.()
    })
  }

  /** Responses that have not begun, and those to come, announce the end of the connection. */
  closeSoon(): void {
    this.#closesSoon = true
    if (this.isBusy && this.#lastResponse?.headersSent === false) this.#lastResponse.shouldKeepAlive = false
  }

  /**
   * Nothing more can be read. Calls `conclude` when the responses before the error are finished; a handler that is reading the
   * broken body learns of it through `brokenBodySignal`.
   */
  fail(error: Error, conclude: (failed: FailedMessage) => void): void {
    this.#hasFailed = true
    const request = this.#lastRequest
    if (request && !request.complete) {
      this.closeSoon()
      this.#whenIdle = () => conclude('body')
      brokenBody(request).abort(error)
    } else {
      this.#whenIdle = () => conclude('head')
    }
    if (!this.isBusy) this.#whenIdle()
  }
}
