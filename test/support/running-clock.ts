import { WINDOWS, getMinutePhaseSeconds } from '../../src/core/window.js'
import { MovableClock } from './movable-clock.js'

/** Stands still until it is started, and then runs at the speed of real time. */
export class RunningClock extends MovableClock {
  #startedAtMs: number | undefined

  override nowMs(): number {
    return super.nowMs() + this.#elapsedMs()
  }

  override monotonicMs(): number {
    return super.monotonicMs() + this.#elapsedMs()
  }

  /** Moves to a point in time at which the minute of a key ends after this time. */
  moveBeforeMinuteEnd(keyId: string, seconds: number): void {
    const minuteMs = WINDOWS.minute.seconds * 1000
    const phaseMs = getMinutePhaseSeconds(keyId) * 1000
    this.moveTo(Math.ceil(this.nowMs() / minuteMs + 1) * minuteMs - phaseMs - seconds * 1000)
  }

  start(): void {
    this.#startedAtMs = performance.now()
  }

  #elapsedMs(): number {
    return this.#startedAtMs === undefined ? 0 : performance.now() - this.#startedAtMs
  }
}
