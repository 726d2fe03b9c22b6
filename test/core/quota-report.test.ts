import { expect } from 'chai'
import type { QuotaState, UsageDelta } from '../../src/core/quota.js'
import { decide, isStale, reconcile, toUsage, unban } from '../../src/core/quota.js'
import { getWindowNumber } from '../../src/core/window.js'
import { someBanRules, someQuotaRules } from '../support/builders.js'
import { readUsed } from '../support/read-used.js'

const MIDNIGHT_MS = Date.UTC(2026, 10, 23)
const NOON_MS = MIDNIGHT_MS + 12 * 3_600_000
const FREE = someQuotaRules()
const NOON = at(NOON_MS)
const FIRST_REJECTION = { firstRejectionMs: NOON_MS - 2_000 }

function at(nowMs: number) {
  return { nowMs, phaseSeconds: 0 }
}

function aState(overrides: Partial<QuotaState> = {}, nowMs = NOON_MS): QuotaState {
  const window = { minute: getWindowNumber('minute', at(nowMs)), day: getWindowNumber('day', at(nowMs)) }
  return { window, used: { minute: 10, day: 100 }, strikes: 0, bannedUntilMs: 0, banLevel: 0, unbannedAtMs: 0, keyVersion: 3, ...overrides }
}

type DeltaOptions = Partial<Record<'nowMs' | 'strikes' | 'minute' | 'day', number>>

/** Returns a delta for the minute and the day of `nowMs`. */
function aDelta({ nowMs = NOON_MS, strikes = 0, minute = 0, day = minute }: DeltaOptions = {}): UsageDelta {
  return { window: aState({}, nowMs).window, strikes, used: { minute, day } }
}

describe('usage that a replica reports after an outage', () => {
  it('is added to the windows in which it was granted', () => {
    expect(reconcile(aState(), FREE, NOON, aDelta({ minute: 7 }))).to.deep.equal(aState({ used: { minute: 17, day: 107 } }))
    expect(reconcile(undefined, FREE, NOON, aDelta({ minute: 7 }))).to.deep.equal(aState({ used: { minute: 7, day: 7 }, keyVersion: 0 }))
  })

  it('is added only to the day if its minute has ended', () => {
    const state = reconcile(aState(FIRST_REJECTION), FREE, at(NOON_MS + 60_000), aDelta({ minute: 7, strikes: 70 }))
    expect(state).to.deep.equal(aState({ used: { minute: 0, day: 107 } }, NOON_MS + 60_000))
  })

  it('is not added if its day has ended', () => {
    const state = reconcile(undefined, FREE, at(MIDNIGHT_MS), aDelta({ nowMs: MIDNIGHT_MS - 1, minute: 7, strikes: 70 }))
    expect(state).to.deep.include({ used: { minute: 0, day: 0 }, strikes: 0, bannedUntilMs: 0 })
  })

  it('is added only to the day if a clock that is ahead counted it in a later minute', () => {
    const state = reconcile(aState(FIRST_REJECTION), FREE, NOON, aDelta({ nowMs: NOON_MS + 60_000, minute: 7, strikes: 70 }))
    expect(state).to.deep.equal(aState({ ...FIRST_REJECTION, used: { minute: 10, day: 107 } }))
  })

  it('may exceed both limits, and then 0 requests remain', () => {
    const state = reconcile(aState({ used: { minute: 59, day: 999 } }), FREE, NOON, aDelta({ minute: 50 }))
    expect(state.used).to.deep.equal({ minute: 109, day: 1049 })
    const { quota } = toUsage(state, FREE, NOON)
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([0, 0])
  })

  it('refunds if more was refunded than charged, but never below zero', () => {
    expect(reconcile(aState(), FREE, NOON, aDelta({ minute: -4 })).used).to.deep.equal({ minute: 6, day: 96 })
    expect(reconcile(aState(), FREE, NOON, aDelta({ minute: -40, day: -400 })).used).to.deep.equal({ minute: 0, day: 0 })
  })

  it('adds its strikes to those of the minute', () => {
    const state = aState({ ...FIRST_REJECTION, strikes: 20 })
    expect(reconcile(state, FREE, NOON, aDelta({ strikes: 39 }))).to.deep.equal({ ...state, strikes: 59 })
  })

  it('adds no strikes from before an unban', () => {
    const unbanned = unban(aState({ ...FIRST_REJECTION, strikes: 20 }), NOON_MS)
    expect(reconcile(unbanned, FREE, NOON, aDelta({ strikes: 39, minute: 1 }))).to.deep.equal(
      aState({ used: { minute: 11, day: 101 }, unbannedAtMs: NOON_MS }),
    )
  })

  it('starts at most one ban, at the time of the report', () => {
    const state = reconcile(aState({ ...FIRST_REJECTION, strikes: 20 }), FREE, NOON, aDelta({ strikes: 200 }))
    expect(state).to.deep.equal(aState({ bannedUntilMs: NOON_MS + 60_000, banLevel: 1 }))
  })

  it('adds no strikes to a banned key', () => {
    const banned = aState({ ...FIRST_REJECTION, bannedUntilMs: NOON_MS + 1, banLevel: 1 })
    expect(reconcile(banned, FREE, NOON, aDelta({ strikes: 200 }))).to.deep.equal(banned)
    expect(reconcile(banned, FREE, at(NOON_MS + 1), aDelta({ strikes: 60 }))).to.include({ banLevel: 2, bannedUntilMs: NOON_MS + 120_001 })
  })

  it('is counted before the request that it is reported with', () => {
    const decided = (minute: number, delta?: UsageDelta) => decide(aState({ used: { minute, day: 100 } }), FREE, NOON, delta).verdict.kind
    expect(decided(59)).to.equal('admitted')
    expect(decided(59, aDelta({ minute: 1 }))).to.equal('exhausted')
    expect(decided(60, aDelta({ minute: -1 }))).to.equal('admitted')
  })

  it('rejects the request that it is reported with if its strikes start a ban; otherwise that request may be the last strike', () => {
    const state = aState({ used: { minute: 60, day: 100 }, ...FIRST_REJECTION })
    const decideWithStrikes = (strikes: number) => decide(state, FREE, NOON, aDelta({ strikes }))
    expect(decideWithStrikes(58)).to.nested.include({ 'verdict.kind': 'exhausted', 'state.strikes': 59 })
    for (const strikes of [59, 60, 61])
      expect(decideWithStrikes(strikes)).to.nested.include({
        'verdict.kind': 'banned',
        'state.bannedUntilMs': NOON_MS + 60_000,
        'state.banLevel': 1,
      })
  })

  it('keeps the key version', () => {
    expect(reconcile(aState({ keyVersion: 7 }), FREE, NOON, aDelta({ minute: 1 })).keyVersion).to.equal(7)
  })

  it('leads to the same state as deciding the ten rejected requests one at a time', () => {
    const rules = someQuotaRules({ ban: someBanRules({ minStrikes: 500 }) })
    const state = aState({ used: { minute: 60, day: 100 }, ...FIRST_REJECTION })
    let oneByOne: QuotaState = state
    for (let strike = 0; strike < 10; strike++) ({ state: oneByOne } = decide(oneByOne, rules, NOON))
    expect(reconcile(state, rules, NOON, aDelta({ strikes: 10 }))).to.deep.equal(oneByOne)
  })
})

describe('a record of a key', () => {
  for (const [what, isExpectedStale, keyVersion, knownVersion] of [
    ['is stale if a later one is known', true, { version: 2 }, 3],
    ['is not stale if it is the latest known one', false, { version: 3 }, 3],
    ['is not stale if it is later than the known ones', false, { version: 4 }, 3],
    ['is not stale if no version is known', false, { version: 1 }, 0],
    ['is not stale if it was read after the known version was found', false, { version: 2, readSince: 9 }, 9],
    ['is stale if a later version became known after it was read', true, { version: 2, readSince: 8 }, 9],
    ['is not stale if it is later than the version that was found before it was read', false, { version: 9, readSince: 3 }, 9],
  ] as const) {
    it(what, () => {
      expect(isStale(keyVersion, knownVersion)).to.equal(isExpectedStale)
    })
  }
})

describe('the key version of a state', () => {
  it('survives midnight', () => {
    const { state } = decide(aState({ keyVersion: 7 }), FREE, at(MIDNIGHT_MS + 86_400_000))
    expect(state.keyVersion).to.equal(7)
    expect(state.used).to.deep.equal({ minute: 1, day: 1 })
  })
})

describe('the usage of a key', () => {
  it('is 0 without a state', () => {
    const { quota, windows, ...usage } = toUsage(undefined, FREE, NOON)
    expect(usage).to.deep.equal({ strikes: 0, banLevel: 0 })
    expect(windows).to.deep.equal({ minute: { ...quota.minute, used: 0 }, day: { ...quota.day, used: 0 } })
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([60, 1000])
  })

  it('is the number of requests charged in the current windows, even if it exceeds the limits', () => {
    const state = aState({ used: { minute: 70, day: 100 }, strikes: 5, firstRejectionMs: NOON_MS })
    const usage = toUsage(state, FREE, NOON)
    expect(usage).to.include({ strikes: 5, banLevel: 0 })
    expect(usage.windows).to.deep.nested.include({ minute: { ...usage.quota.minute, used: 70 }, day: { ...usage.quota.day, used: 100 } })
    expect([usage.quota.minute.remaining, usage.quota.day.remaining]).to.deep.equal([0, 900])
    const later = toUsage(state, FREE, at(NOON_MS + 60_000))
    expect([readUsed(later), later.strikes]).to.deep.equal([[0, 100], 0])
  })

  it('has the actual end of each window during a ban, with 0 requests remaining, although the quota has the end of the ban', () => {
    const state = aState({ bannedUntilMs: NOON_MS + 300_000, banLevel: 3 })
    const { windows, quota } = toUsage(state, FREE, NOON)
    const current = toUsage(aState(), FREE, NOON).quota
    expect(windows).to.deep.equal({
      minute: { limit: 60, used: 10, remaining: 0, resetSeconds: current.minute.resetSeconds },
      day: { limit: 1000, used: 100, remaining: 0, resetSeconds: MIDNIGHT_MS / 1000 + 86_400 },
    })
    expect(quota.minute.resetSeconds).to.equal(NOON_MS / 1000 + 300)
  })

  it('includes a ban until its last millisecond, with 0 requests remaining, and its level until it is forgotten', () => {
    const state = aState({ bannedUntilMs: NOON_MS + 5_000, banLevel: 2 })
    const during = toUsage(state, FREE, at(NOON_MS + 4_999))
    expect(during).to.include({ bannedUntilMs: NOON_MS + 5_000, banLevel: 2 })
    expect(during.quota.binding.remaining).to.equal(0)
    const after = toUsage(state, FREE, at(NOON_MS + 5_000))
    expect(after).to.include({ banLevel: 2 }).and.not.to.have.property('bannedUntilMs')
    expect(toUsage(state, FREE, at(NOON_MS + 5_000 + FREE.ban.forgetAfterMs))).to.include({ banLevel: 0 })
  })
})

describe('an unban', () => {
  it('removes the ban, the strikes, the first rejection and the ban level, and nothing else', () => {
    const state = aState({ bannedUntilMs: NOON_MS + 5_000, banLevel: 4, strikes: 30, firstRejectionMs: NOON_MS })
    expect(unban(state, NOON_MS)).to.deep.equal(aState({ unbannedAtMs: NOON_MS }))
  })
})
