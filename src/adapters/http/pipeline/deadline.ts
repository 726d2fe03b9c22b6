import type { Cancellation } from '../../../core/cancellation.js'
import { StoreUnavailable } from '../../../core/errors.js'

/**
 * The time in which a request is served, without the time in which its body arrives. Longer than one call to a store. Leaves time for the
 * refund and the response within 2 s.
 */
const SERVICE_TIMEOUT_MS = 1_850

/** Limits the time in which one request is served. Call `end` when the request has a result. Cheaper than an `AbortController`. */
export class Deadline implements Cancellation {
  /** Undefined until the deadline. */
  reason: StoreUnavailable | undefined
  #fail: (reason: StoreUnavailable) => void = () => undefined
  #timer: NodeJS.Timeout | undefined
  #startedMs = 0

  constructor(private remainingMs = SERVICE_TIMEOUT_MS) {
    this.#start()
  }

  get aborted(): boolean {
    return this.reason !== undefined
  }

  throwIfAborted(): void {
    if (this.reason) throw this.reason
  }

  /**
   * Resolves like `work`. Throws `StoreUnavailable` at the deadline: what is then still running must not use the request or the response, and
   * its outcome is ignored. One race at a time.
   */
  race<Value>(work: (cancellation: Cancellation) => Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.throwIfAborted()
      this.#fail = reject
      work(this).then(resolve, reject)
    })
  }

  /** Runs the work without counting its time. */
  async pauseDuring<Value>(work: () => Promise<Value>): Promise<Value> {
    this.throwIfAborted()
    this.end()
    this.remainingMs -= performance.now() - this.#startedMs
    try {
      return await work()
    } finally {
      this.#start()
    }
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  #start(): void {
    this.#startedMs = performance.now()
    this.#timer = setTimeout(() => {
      this.reason = new StoreUnavailable('The request was not served in time')
      this.#fail(this.reason)
    }, this.remainingMs)
  }
}
