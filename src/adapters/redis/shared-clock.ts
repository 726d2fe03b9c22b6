import type { Clock } from '../../core/ports/clock.js'

/** Estimates the clock of Redis from its last reply. The estimate is never behind, and ahead by at most the time that the reply took. */
export class SharedClock implements Clock {
  #offsetMs = 0

  constructor(private readonly clock: Clock) {}

  nowMs(): number {
    return this.clock.nowMs() + this.#offsetMs
  }

  /** `sentAtMs`: when the command was sent, by the local clock. */
  observe(sharedNowMs: number, sentAtMs: number): void {
    this.#offsetMs = sharedNowMs - sentAtMs
  }
}
