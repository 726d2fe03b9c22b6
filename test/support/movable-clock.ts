import type { Clock } from '../../src/core/ports/clock.js'

/** A clock that only tests move. Starts in the middle of a day and of a minute. */
export class MovableClock implements Clock {
  constructor(private ms = Date.UTC(2026, 10, 20, 12, 0, 30)) {}

  nowMs(): number {
    return this.ms
  }

  advanceMs(ms: number): void {
    this.ms += ms
  }

  advanceSeconds(seconds: number): void {
    this.ms += seconds * 1000
  }

  moveTo(ms: number): void {
    this.ms = ms
  }
}
