import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { abortBrokenBody } from './broken-body.js'

/** The part of a message in which the parser failed. */
export type FailedPart =
  /** In the body of a request whose handler sends the response, or has already sent it. */
  | 'body'
  /** In the head of a request that no handler has seen: the error needs a response of its own. */
  | 'head'

/** One client connection and the requests on it, which may be pipelined: responses are sent in request order. */
export class Connection {
  #unfinished = 0
  #lastRequest: IncomingMessage | undefined
  #lastResponse: ServerResponse | undefined
  #hasFailed = false
  #closesSoon = false
  #wasCut = false
  #whenIdle: (() => void) | undefined

  constructor(readonly socket: Socket) {}

  /** Number of unfinished responses. */
  get unfinished(): number {
    return this.#unfinished
  }

  get isBusy(): boolean {
    return this.#unfinished > 0
  }

  /** Whether a response has announced the end of the connection: requests after it get no response (RFC 9112, 9.6). */
  get isEnding(): boolean {
    return this.#lastResponse?.headersSent === true && !this.#lastResponse.shouldKeepAlive
  }

  /** Whether the connection closed before a response was written in full. */
  get wasCut(): boolean {
    return this.isBusy || this.#wasCut
  }

  /** Whether a request has arrived in full and its response is unfinished. Only the last of several requests can be incomplete. */
  get isServing(): boolean {
    return this.#unfinished > 1 || (this.isBusy && this.#lastRequest?.complete === true)
  }

  /** Call for each request as soon as its head is read. */
  add(request: IncomingMessage, response: ServerResponse): void {
    // Node closes the connection after the first response with `Connection: close`. If the previous one had it, this request would get none.
    if (this.#closesSoon && this.isBusy && this.#lastResponse?.headersSent === false) this.#lastResponse.shouldKeepAlive = true
    this.#unfinished += 1
    this.#lastRequest = request
    this.#lastResponse = response
    // Node's parser discards data that follows an upgrade request in the same TCP segment.
    if (this.#closesSoon || request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    response.once('close', () => {
      this.#unfinished -= 1
      // Node also reports a response as finished if its connection is destroyed.
      if (this.socket.destroyed && !this.socket.writableFinished) this.#wasCut = true
      if (!this.isBusy) this.#whenIdle?.()
    })
  }

  /** Announces the end of the connection (`Connection: close`) on the last response, unless its headers are sent. */
  closeSoon(): void {
    this.#closesSoon = true
    if (this.isBusy && this.#lastResponse?.headersSent === false) this.#lastResponse.shouldKeepAlive = false
  }

  /**
   * Call when the parser fails: no further request can be read. Calls `finish` once, when the responses to earlier requests are
   * finished. Aborts `brokenBodySignal` for a handler that is reading the broken body. Ignores further errors.
   */
  fail(error: Error, conclude: (part: FailedPart) => void): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    const request = this.#lastRequest
    if (request && !request.complete) {
      this.closeSoon()
      this.#whenIdle = () => conclude('body')
      abortBrokenBody(request, error)
    } else {
      this.#whenIdle = () => conclude('head')
    }
    if (!this.isBusy) this.#whenIdle()
  }
}
