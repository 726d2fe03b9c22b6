import { syncBuiltinESMExports } from 'node:module'
import type { Clock as FakeClock } from '@sinonjs/fake-timers'
import FakeTimers from '@sinonjs/fake-timers'

const runsAfterPromises = setImmediate

/** Replaces the timers and the monotonic clock of this process. Time passes only while `advanceMs` runs. */
export class VirtualTime {
  readonly #fake: FakeClock

  constructor() {
    this.#fake = FakeTimers.install({
      now: 0,
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate', 'performance'],
    })
    syncBuiltinESMExports()
  }

  /** Milliseconds since the time became virtual. */
  get nowMs(): number {
    return this.#fake.now
  }

  /** Calls the timers that are due, one after the other. All promises that a timer settles are handled before the next timer is called. */
  async advanceMs(ms: number): Promise<void> {
    const endMs = this.#fake.now + ms
    let isDue = false
    const end = this.#fake.setTimeout(() => (isDue = true), ms)
    await settlePromises()
    while (!isDue) {
      this.#fake.next()
      await settlePromises()
    }
    this.#fake.clearTimeout(end)
    if (this.#fake.now !== endMs) throw new Error(`The virtual time is ${this.#fake.now} instead of ${endMs}`)
  }

  restore(): void {
    this.#fake.uninstall()
    syncBuiltinESMExports()
  }
}

function settlePromises(): Promise<void> {
  return new Promise((resolve) => runsAfterPromises(resolve))
}
