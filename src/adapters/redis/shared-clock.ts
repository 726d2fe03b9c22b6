import type { Clock } from '../../core/ports/clock.js'

/** What the clock of Redis says, as far as its last answer tells: ahead of it by no more than that answer took, and never behind. */
export class SharedClock implements Clock {
  #offsetMs = 0

  constructor(private readonly clock: Clock) {}

  nowMs(): number {
    return this.clock.nowMs() + this.#offsetMs
  }

  /** `sentAtMs`: by the local clock. */
  observe(sharedNowMs: number, sentAtMs: number): void {
    this.#offsetMs = sharedNowMs - sentAtMs
  }
}
