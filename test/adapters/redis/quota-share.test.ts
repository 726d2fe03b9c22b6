import { expect } from 'chai'
import fc from 'fast-check'
import { restrictToShare } from '../../../src/adapters/redis/quota-share.js'
import type { QuotaState } from '../../../src/core/quota.js'
import { decide } from '../../../src/core/quota.js'
import { getWindowNumber } from '../../../src/core/window.js'
import { someQuotaRules } from '../../support/builders.js'

const NOON_MS = Date.UTC(2026, 10, 23, 12)
const FREE = someQuotaRules()
const NOON = at(NOON_MS)
const NEXT_MINUTE = at(NOON_MS + 60_000)

function at(nowMs: number) {
  return { nowMs, phaseSeconds: 0 }
}

function aState(overrides: Partial<QuotaState> = {}, instant = NOON): QuotaState {
  const window = { minute: getWindowNumber('minute', instant), day: getWindowNumber('day', instant) }
  return { window, used: { minute: 10, day: 100 }, strikes: 0, bannedUntilMs: 0, banLevel: 0, unbannedAtMs: 0, keyVersion: 3, ...overrides }
}

/** `instant` defaults to noon. */
function share({ own, shared }: { own?: QuotaState; shared?: QuotaState }, replicas: number, instant = NOON): QuotaState {
  return restrictToShare({ own, shared }, FREE, instant, replicas)
}

function getRemaining({ used }: QuotaState): number[] {
  return [FREE.limits.minute - used.minute, FREE.limits.day - used.day]
}

describe("a replica's share of a key without a known state", () => {
  for (const [replicas, shares] of [
    [1, [60, 1000]],
    [2, [30, 500]],
    [7, [9, 143]],
    [60, [1, 17]],
    [61, [1, 17]],
    [5000, [1, 1]],
  ] as const) {
    it(`is ${shares.join(' and ')} of 60 and 1,000 for ${replicas} replicas: rounded up`, () => {
      expect(getRemaining(share({}, replicas))).to.deep.equal(shares)
    })
  }

  it('is new in each window, and granted once in a window', () => {
    let own = share({}, 4)
    for (let count = 0; count < 15; count++) ({ state: own } = decide(share({ own }, 4), FREE, NOON))
    expect(getRemaining(share({ own }, 4))).to.deep.equal([0, 235])
    expect(getRemaining(share({ own }, 4, NEXT_MINUTE))).to.deep.equal([15, 235])
    expect(getRemaining(share({ own }, 4, at(NOON_MS + 86_400_000)))).to.deep.equal([15, 250])
  })
})

describe("a replica's share of a key whose shared state is known", () => {
  it('is its part of the remaining requests, rounded up', () => {
    expect(getRemaining(share({ shared: aState() }, 3))).to.deep.equal([17, 300])
    expect(getRemaining(share({ shared: aState({ used: { minute: 59, day: 999 } }) }, 3))).to.deep.equal([1, 1])
    expect(getRemaining(share({ shared: aState() }, 1))).to.deep.equal([50, 900])
  })

  it('is 0 if usage has reached or exceeded the limit', () => {
    expect(getRemaining(share({ shared: aState({ used: { minute: 60, day: 1000 } }) }, 3))).to.deep.equal([0, 0])
    expect(getRemaining(share({ shared: aState({ used: { minute: 90, day: 2000 } }) }, 3))).to.deep.equal([0, 0])
  })

  it('is its part of the limit in a window that has begun since', () => {
    expect(getRemaining(share({ shared: aState() }, 3, NEXT_MINUTE))).to.deep.equal([20, 300])
  })

  it('keeps ban, ban level, strikes and key version', () => {
    const shared = aState({ bannedUntilMs: NOON_MS + 5, banLevel: 2, strikes: 7, firstRejectionMs: NOON_MS })
    const state = share({ shared }, 3)
    expect(state).to.deep.equal({ ...shared, used: state.used })
  })

  it('adds up, over all replicas, to at most the remaining requests plus one for each replica but one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.nat({ max: 60 }), fc.nat({ max: 1000 }), (replicas, minute, day) => {
        const [minuteShare = 0, dayShare = 0] = getRemaining(share({ shared: aState({ used: { minute, day } }) }, replicas))
        expect(minuteShare * replicas).to.be.within(60 - minute, 60 - minute + replicas - 1)
        expect(dayShare * replicas).to.be.within(1000 - day, 1000 - day + replicas - 1)
      }),
      { seed: 20_261_123 },
    )
  })
})

describe("a replica's own state with the state that all replicas shared later", () => {
  // The share of a single replica is everything that remains, so the result shows the merged state.
  const merged = (own: QuotaState, shared: QuotaState) => share({ own, shared }, 1)

  it('has the higher usage of each window, from either state', () => {
    const [one, other] = [aState({ used: { minute: 20, day: 50 } }), aState({ used: { minute: 5, day: 200 } })]
    for (const [own, shared] of [
      [one, other],
      [other, one],
    ] as const) {
      expect(merged(own, shared).used).to.deep.equal({ minute: 20, day: 200 })
    }
  })

  it('has the usage of the newer minute, and the higher usage of the day', () => {
    const older = aState({ used: { minute: 50, day: 300 } })
    const newer = aState({ used: { minute: 2, day: 100 } }, NEXT_MINUTE)
    for (const [own, shared] of [
      [older, newer],
      [newer, older],
    ] as const) {
      expect(share({ own, shared }, 1, NEXT_MINUTE).used).to.deep.equal({ minute: 2, day: 300 })
    }
  })

  it('has the ban that ends later, with its level', () => {
    const short = aState({ bannedUntilMs: NOON_MS + 60_000, banLevel: 1 })
    const long = aState({ bannedUntilMs: NOON_MS + 120_000, banLevel: 2 })
    for (const [own, shared] of [
      [short, long],
      [long, short],
      [aState(), long],
      [long, aState()],
    ] as const) {
      expect(merged(own, shared)).to.include({ bannedUntilMs: NOON_MS + 120_000, banLevel: 2 })
    }
  })

  it('has the higher key version', () => {
    for (const [own, shared] of [
      [4, 9],
      [9, 4],
    ] as const) {
      expect(merged(aState({ keyVersion: own }), aState({ keyVersion: shared })).keyVersion).to.equal(9)
    }
  })

  it('has the higher strikes and ban level, and the earlier first rejection, if the bans are the same', () => {
    const own = aState({ strikes: 3, firstRejectionMs: NOON_MS - 2, bannedUntilMs: NOON_MS + 1, banLevel: 1 })
    const shared = aState({ strikes: 9, firstRejectionMs: NOON_MS - 1, bannedUntilMs: NOON_MS + 1, banLevel: 4 })
    expect(merged(own, shared)).to.include({ strikes: 9, firstRejectionMs: NOON_MS - 2, banLevel: 4 })
  })
})
