import { expect } from 'chai'
import fc from 'fast-check'
import type { Limits, QuotaState } from '../../src/core/quota.js'
import { decide } from '../../src/core/quota.js'
import { openShare, shareOfKnown } from '../../src/core/quota-share.js'
import { windowNumber } from '../../src/core/window.js'
import { someQuotaRules } from '../support/builders.js'

const NOON_MS = Date.UTC(2026, 10, 23, 12)
const FREE = someQuotaRules()
const NOON = at(NOON_MS)

function at(nowMs: number) {
  return { nowMs, phaseSeconds: 0 }
}

function aState(overrides: Partial<QuotaState> = {}): QuotaState {
  const window = { minute: windowNumber('minute', NOON), day: windowNumber('day', NOON) }
  return { window, used: { minute: 10, day: 100 }, strikes: 0, bannedUntilMs: 0, banLevel: 0, version: 3, ...overrides }
}

function left({ used }: QuotaState, limits: Limits = FREE.limits): number[] {
  return [limits.minute - used.minute, limits.day - used.day]
}

describe("a replica's share of a key that it does not know", () => {
  for (const [replicas, shares] of [
    [1, [60, 1000]],
    [2, [30, 500]],
    [7, [9, 143]],
    [60, [1, 17]],
    [61, [1, 17]],
    [5000, [1, 1]],
  ] as const) {
    it(`is ${shares.join(' and ')} of 60 and 1,000 where there are ${replicas}: rounded up`, () => {
      expect(left(openShare(undefined, FREE, NOON, replicas))).to.deep.equal(shares)
    })
  }

  it('begins anew with each window, and not within one', () => {
    let state = openShare(undefined, FREE, NOON, 4)
    for (let count = 0; count < 15; count++) ({ state } = decide(openShare(state, FREE, NOON, 4), FREE, NOON))
    expect(left(openShare(state, FREE, NOON, 4))).to.deep.equal([0, 235])
    const later = at(NOON_MS + 60_000)
    expect(left(openShare(state, FREE, later, 4))).to.deep.equal([15, 235])
    expect(left(openShare(state, FREE, at(NOON_MS + 86_400_000), 4))).to.deep.equal([15, 250])
  })
})

describe("a replica's share of a key that it knows", () => {
  it('is its part of what was left, rounded up', () => {
    expect(left(shareOfKnown(aState(), FREE, 3))).to.deep.equal([17, 300])
    expect(left(shareOfKnown(aState({ used: { minute: 59, day: 999 } }), FREE, 3))).to.deep.equal([1, 1])
    expect(left(shareOfKnown(aState(), FREE, 1))).to.deep.equal([50, 900])
  })

  it('is nothing where nothing was left, or less', () => {
    expect(left(shareOfKnown(aState({ used: { minute: 60, day: 1000 } }), FREE, 3))).to.deep.equal([0, 0])
    expect(left(shareOfKnown(aState({ used: { minute: 90, day: 2000 } }), FREE, 3))).to.deep.equal([0, 0])
  })

  it('of a window that has ended since is its part of the whole', () => {
    const share = openShare(shareOfKnown(aState(), FREE, 3), FREE, at(NOON_MS + 60_000), 3)
    expect(left(share)).to.deep.equal([20, 300])
  })

  it('leaves ban, level, strikes and version as they were', () => {
    const state = aState({ bannedUntilMs: NOON_MS + 5, banLevel: 2, strikes: 7, firstRejectionMs: NOON_MS })
    const share = openShare(shareOfKnown(state, FREE, 3), FREE, NOON, 3)
    expect(share).to.deep.equal({ ...state, used: share.used })
  })

  it('is never more, summed over all replicas, than was left and one for each replica but one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.nat({ max: 60 }), fc.nat({ max: 1000 }), (replicas, minute, day) => {
        const [ofMinute = 0, ofDay = 0] = left(shareOfKnown(aState({ used: { minute, day } }), FREE, replicas))
        expect(ofMinute * replicas).to.be.within(60 - minute, 60 - minute + replicas - 1)
        expect(ofDay * replicas).to.be.within(1000 - day, 1000 - day + replicas - 1)
      }),
      { seed: 20_261_123 },
    )
  })
})
