import type { Clock } from '../../core/ports/clock.js'

/**
 * Estimates the clock of Redis from its last reply. The estimate is never behind, and ahead by at most the time that the reply took. Once Redis
 * has replied, the estimate ignores changes of the local Unix time.
 */
export class SharedClock {
  #offsetMs: number | undefined

  constructor(private readonly clock: Clock) {}

  /** Unix time in whole milliseconds. */
  nowMs(): number {
    return this.#offsetMs === undefined ? this.clock.nowMs() : Math.ceil(this.clock.monotonicMs() + this.#offsetMs)
  }

  /** `sentAtMs`: when the command was sent, by the monotonic local clock. */
  observe(sharedNowMs: number, sentAtMs: number): void {
    this.#offsetMs = sharedNowMs - sentAtMs
  }
}
