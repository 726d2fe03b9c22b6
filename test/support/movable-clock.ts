import type { Clock } from '../../src/core/ports/clock.js'

/** A clock that only tests move. Starts in the middle of a day and of a minute. */
export class MovableClock implements Clock {
  #monotonicMs = 1_000_000

  constructor(private ms = Date.UTC(2026, 10, 20, 12, 0, 30)) {}

  nowMs(): number {
    return this.ms
  }

  monotonicMs(): number {
    return this.#monotonicMs
  }

  advanceMs(ms: number): void {
    this.moveTo(this.ms + ms)
  }

  advanceSeconds(seconds: number): void {
    this.advanceMs(seconds * 1000)
  }

  /** The monotonic clock moves forward only. */
  moveTo(ms: number): void {
    this.#monotonicMs += Math.max(0, ms - this.ms)
    this.ms = ms
  }

  /** Changes the Unix time only, like an operator or a time server that sets the clock. */
  step(ms: number): void {
    this.ms += ms
  }
}
