import { expect } from 'chai'

/** Counts what occurred, because a simulation in which nothing happens proves nothing. */
export class Tally {
  readonly counts = new Map<string, number>()

  add(what: string, times = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times)
  }

  get(what: string): number {
    return this.counts.get(what) ?? 0
  }

  expectAtLeast(times: number, ...cases: readonly string[]): void {
    for (const each of cases) expect(this.get(each), each).to.be.at.least(times)
  }
}
