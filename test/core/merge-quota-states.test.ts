import { expect } from 'chai'
import fc from 'fast-check'
import { mergeQuotaStates } from '../../src/core/merge-quota-states.js'
import type { QuotaState } from '../../src/core/quota.js'
import { unban } from '../../src/core/quota.js'

const SEED = { seed: 20_261_122, numRuns: 2_000 }

/** Few different values, so that many states have the same ban or window. */
const anyState: fc.Arbitrary<QuotaState> = fc
  .record({
    window: fc.record({ minute: fc.integer({ min: 7, max: 9 }), day: fc.integer({ min: 1, max: 2 }) }),
    used: fc.record({ minute: fc.nat({ max: 5 }), day: fc.nat({ max: 5 }) }),
    strikes: fc.nat({ max: 3 }),
    firstRejectionMs: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    bannedUntilMs: fc.constantFrom(0, 100, 200),
    banLevel: fc.nat({ max: 3 }),
    unbannedAtMs: fc.constantFrom(0, 50, 60),
    keyVersion: fc.nat({ max: 3 }),
  })
  .map(({ firstRejectionMs, ...state }) => (firstRejectionMs === undefined ? state : { ...state, firstRejectionMs }))

function aState(overrides: Partial<QuotaState> = {}): QuotaState {
  const base = { window: { minute: 8, day: 1 }, used: { minute: 3, day: 30 }, strikes: 0, bannedUntilMs: 0, banLevel: 0, unbannedAtMs: 0 }
  return { ...base, keyVersion: 1, ...overrides }
}

describe('merging what replicas know of a key', () => {
  it('has the same result in any order and grouping, and merging a state again changes nothing', () => {
    fc.assert(
      fc.property(anyState, anyState, anyState, (a, b, c) => {
        const merged = mergeQuotaStates(a, b)
        expect(mergeQuotaStates(b, a)).to.deep.equal(merged)
        expect(mergeQuotaStates(merged, c)).to.deep.equal(mergeQuotaStates(a, mergeQuotaStates(b, c)))
        expect(mergeQuotaStates(a, a)).to.deep.equal(a)
        expect(mergeQuotaStates(merged, a)).to.deep.equal(merged)
      }),
      SEED,
    )
  })

  it('never lowers usage, a window, or a key version', () => {
    fc.assert(
      fc.property(anyState, anyState, (a, b) => {
        const merged = mergeQuotaStates(a, b)
        for (const name of ['minute', 'day'] as const) {
          expect(merged.window[name]).to.be.at.least(a.window[name])
          if (merged.window[name] === a.window[name]) expect(merged.used[name]).to.be.at.least(a.used[name])
        }
        expect(merged.keyVersion).to.be.at.least(a.keyVersion)
      }),
      SEED,
    )
  })

  for (const [what, one, other, expected] of [
    [
      'keeps the later window with its own usage, and the higher usage of the same window',
      aState({ window: { minute: 9, day: 1 }, used: { minute: 2, day: 10 } }),
      aState({ used: { minute: 50, day: 40 } }),
      { window: { minute: 9, day: 1 }, used: { minute: 2, day: 40 } },
    ],
    [
      'keeps the ban that ends later, with its level',
      aState({ bannedUntilMs: 900, banLevel: 2 }),
      aState({ bannedUntilMs: 500, banLevel: 1 }),
      { bannedUntilMs: 900, banLevel: 2 },
    ],
    [
      'drops a ban that was lifted, even if it would end later',
      aState({ bannedUntilMs: 900, banLevel: 2, strikes: 4, firstRejectionMs: 300 }),
      aState({ unbannedAtMs: 400 }),
      { bannedUntilMs: 0, banLevel: 0, unbannedAtMs: 400, strikes: 0 },
    ],
    [
      'keeps a ban that began after an earlier ban was lifted',
      aState({ bannedUntilMs: 900, banLevel: 2 }),
      aState({ bannedUntilMs: 700, banLevel: 1, unbannedAtMs: 400 }),
      { bannedUntilMs: 700, banLevel: 1, unbannedAtMs: 400 },
    ],
    [
      'keeps the higher strikes and the earlier first rejection of the same minute',
      aState({ strikes: 3, firstRejectionMs: 300 }),
      aState({ strikes: 7, firstRejectionMs: 310 }),
      { strikes: 7, firstRejectionMs: 300 },
    ],
    [
      'drops the strikes that led to a ban',
      aState({ strikes: 59, firstRejectionMs: 300 }),
      aState({ bannedUntilMs: 900, banLevel: 1 }),
      { strikes: 0, bannedUntilMs: 900 },
    ],
    [
      'drops the strikes of an earlier minute',
      aState({ strikes: 59, firstRejectionMs: 300 }),
      aState({ window: { minute: 9, day: 1 } }),
      { strikes: 0 },
    ],
  ] as const) {
    it(what, () => {
      const merged = mergeQuotaStates(one, other)
      expect(merged).to.deep.include(expected)
      expect('firstRejectionMs' in merged).to.equal('firstRejectionMs' in expected)
    })
  }
})

describe('lifting a ban', () => {
  it('is later than every earlier lifting, even if the clock has stepped back', () => {
    const once = unban(aState({ bannedUntilMs: 9_000, banLevel: 1 }), 5_000)
    const twice = unban({ ...once, bannedUntilMs: 9_500, banLevel: 1 }, 1_000)
    expect([once.unbannedAtMs, twice.unbannedAtMs]).to.deep.equal([5_000, 5_001])
    expect(mergeQuotaStates(twice, { ...once, bannedUntilMs: 9_500, banLevel: 1 }).bannedUntilMs).to.equal(0)
  })
})
