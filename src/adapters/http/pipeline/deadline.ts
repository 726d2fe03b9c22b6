import { StoreUnavailable } from '../../../core/errors.js'

/**
 * The time in which a request is served, without the time in which its body arrives. Longer than one call to a store. Leaves time for the
 * refund and the response within 2 s.
 */
const SERVICE_TIMEOUT_MS = 1_850

/** Limits the time in which one request is served. Call `end` when the request has a result. */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #passed: Promise<never>
  #fail: (reason: StoreUnavailable) => void = () => undefined
  #timer: NodeJS.Timeout | undefined
  #startedMs = 0

  constructor(private remainingMs = SERVICE_TIMEOUT_MS) {
    this.#passed = new Promise((_, reject) => {
      this.#fail = reject
    })
    // Without a race, nothing else handles the rejection.
    this.#passed.catch(() => undefined)
    this.#start()
  }

  /** Aborts at the deadline, with `StoreUnavailable` as the reason. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /**
   * Resolves like `work`. Throws `StoreUnavailable` at the deadline: what is then still running must not use the request or the response, and
   * its outcome is ignored.
   */
  async race<Value>(work: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    this.signal.throwIfAborted()
    return Promise.race([work(this.signal), this.#passed])
  }

  /** Runs the work without counting its time. */
  async pauseDuring<Value>(work: () => Promise<Value>): Promise<Value> {
    this.signal.throwIfAborted()
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
      const reason = new StoreUnavailable('The request was not served in time')
      this.#controller.abort(reason)
      this.#fail(reason)
    }, this.remainingMs)
  }
}
