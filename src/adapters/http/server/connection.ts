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
  #unfinishedResponses = 0
  #lastRequest: IncomingMessage | undefined
  #lastResponse: ServerResponse | undefined
  #hasFailed = false
  #isClosing = false
  #wasAborted = false
  #onIdle: (() => void) | undefined

  constructor(readonly socket: Socket) {}

  /** Number of unfinished responses. */
  get unfinishedResponses(): number {
    return this.#unfinishedResponses
  }

  get isBusy(): boolean {
    return this.#unfinishedResponses > 0
  }

  /** Whether a response has announced the end of the connection: requests after it get no response (RFC 9112, 9.6). */
  get isEnding(): boolean {
    return this.#lastResponse?.headersSent === true && !this.#lastResponse.shouldKeepAlive
  }

  /** Whether the connection closed before a response was written in full. */
  get wasAborted(): boolean {
    return this.isBusy || this.#wasAborted
  }

  /** Whether a request has arrived in full and its response is unfinished. Only the last of several requests can be incomplete. */
  get isServing(): boolean {
    return this.#unfinishedResponses > 1 || (this.isBusy && this.#lastRequest?.complete === true)
  }

  /** Call for each request as soon as its head is read. */
  add(request: IncomingMessage, response: ServerResponse): void {
    // Node closes the connection after the first response with `Connection: close`. If the previous one had it, this request would get none.
    if (this.#isClosing && this.isBusy && this.#lastResponse?.headersSent === false) this.#lastResponse.shouldKeepAlive = true
    this.#unfinishedResponses += 1
    this.#lastRequest = request
    this.#lastResponse = response
    // Node's parser discards data that follows an upgrade request in the same TCP segment.
    if (this.#isClosing || request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    response.once('close', () => {
      this.#unfinishedResponses -= 1
      // Node also reports a response as finished if its connection is destroyed.
      if (this.socket.destroyed && !this.socket.writableFinished) this.#wasAborted = true
      if (!this.isBusy) this.#onIdle?.()
    })
  }

  /** Announces the end of the connection (`Connection: close`) on the last response, unless its headers are sent. */
  announceClose(): void {
    this.#isClosing = true
    if (this.isBusy && this.#lastResponse?.headersSent === false) this.#lastResponse.shouldKeepAlive = false
  }

  /**
   * Call when the parser fails: no further request can be read. Calls `finish` once, when the responses to earlier requests are
   * finished. Aborts the signal of `getBrokenBodySignal` for a handler that is reading the broken body. Ignores further errors.
   */
  fail(error: Error, finish: (part: FailedPart) => void): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    const request = this.#lastRequest
    if (request && !request.complete) {
      this.announceClose()
      this.#onIdle = () => finish('body')
      abortBrokenBody(request, error)
    } else {
      this.#onIdle = () => finish('head')
    }
    if (!this.isBusy) this.#onIdle()
  }
}
