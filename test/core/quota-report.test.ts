import { expect } from 'chai'
import { decide, isOutdated, reconcile, unban, toUsage } from '../../src/core/quota.js'
import type { QuotaState, UsageDelta } from '../../src/core/quota.js'
import { windowNumber } from '../../src/core/window.js'
import { someBanRules, someQuotaRules } from '../support/builders.js'

const MIDNIGHT_MS = Date.UTC(2026, 10, 23)
const NOON_MS = MIDNIGHT_MS + 12 * 3_600_000
const FREE = someQuotaRules()
const NOON = at(NOON_MS)

function at(nowMs: number) {
  return { nowMs, phaseSeconds: 0 }
}

function aState(overrides: Partial<QuotaState> = {}, nowMs = NOON_MS): QuotaState {
  const window = { minute: windowNumber('minute', at(nowMs)), day: windowNumber('day', at(nowMs)) }
  return { window, used: { minute: 10, day: 100 }, strikes: 0, bannedUntilMs: 0, banLevel: 0, version: 3, ...overrides }
}

/** Of the minute and the day of `nowMs`. */
function aReport({
  nowMs = NOON_MS,
  strikes = 0,
  minute = 0,
  day,
}: Partial<Record<'nowMs' | 'strikes' | 'minute' | 'day', number>> = {}): UsageDelta {
  return { window: aState({}, nowMs).window, strikes, used: { minute, day: day ?? minute } }
}

describe('what a replica reports to have decided by itself', () => {
  it('is added to the windows that it was decided in', () => {
    expect(reconcile(aState(), FREE, NOON, aReport({ minute: 7 }))).to.deep.equal(aState({ used: { minute: 17, day: 107 } }))
    expect(reconcile(undefined, FREE, NOON, aReport({ minute: 7 }))).to.deep.equal(aState({ used: { minute: 7, day: 7 }, version: 0 }))
  })

  it('of a minute that is over is added to the day alone', () => {
    const state = reconcile(aState(), FREE, at(NOON_MS + 60_000), aReport({ minute: 7, strikes: 70 }))
    expect(state).to.deep.equal(aState({ used: { minute: 0, day: 107 } }, NOON_MS + 60_000))
  })

  it('of a day that is over is added to nothing', () => {
    const state = reconcile(undefined, FREE, at(MIDNIGHT_MS), aReport({ nowMs: MIDNIGHT_MS - 1, minute: 7, strikes: 70 }))
    expect(state)
      .to.include({ strikes: 0, bannedUntilMs: 0 })
      .and.to.deep.include({ used: { minute: 0, day: 0 } })
  })

  it('of a minute to come, as a clock that is ahead would have it, is added to nothing but the day', () => {
    const state = reconcile(aState(), FREE, NOON, aReport({ nowMs: NOON_MS + 60_000, minute: 7, strikes: 70 }))
    expect(state).to.deep.equal(aState({ used: { minute: 10, day: 107 } }))
  })

  it('may take both windows over their limits, and then nothing is left, and never less', () => {
    const state = reconcile(aState({ used: { minute: 59, day: 999 } }), FREE, NOON, aReport({ minute: 50 }))
    expect(state.used).to.deep.equal({ minute: 109, day: 1049 })
    const { quota } = toUsage(state, FREE, NOON)
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([0, 0])
  })

  it('gives back where more was given back than taken, and never below zero', () => {
    expect(reconcile(aState(), FREE, NOON, aReport({ minute: -4 })).used).to.deep.equal({ minute: 6, day: 96 })
    expect(reconcile(aState(), FREE, NOON, aReport({ minute: -40, day: -400 })).used).to.deep.equal({ minute: 0, day: 0 })
  })

  it('adds its strikes to those of the minute', () => {
    expect(reconcile(aState({ strikes: 20 }), FREE, NOON, aReport({ strikes: 39 }))).to.deep.equal(aState({ strikes: 59 }))
  })

  it('brings the ban that its strikes complete, from now on, and what is left of them begins no second one', () => {
    const state = reconcile(aState({ strikes: 20, firstRejectionMs: NOON_MS - 5_000 }), FREE, NOON, aReport({ strikes: 200 }))
    expect(state).to.deep.equal(aState({ bannedUntilMs: NOON_MS + 60_000, banLevel: 1 }))
  })

  it('holds nothing against a key that is banned', () => {
    const banned = aState({ bannedUntilMs: NOON_MS + 1, banLevel: 1 })
    expect(reconcile(banned, FREE, NOON, aReport({ strikes: 200 }))).to.deep.equal(banned)
    expect(reconcile(banned, FREE, at(NOON_MS + 1), aReport({ strikes: 60 }))).to.include({
      banLevel: 2,
      bannedUntilMs: NOON_MS + 1 + 120_000,
    })
  })

  it('counts before the request that it comes with', () => {
    const used = { minute: 59, day: 100 }
    expect(decide(aState({ used }), FREE, NOON).verdict.kind).to.equal('admitted')
    expect(decide(aState({ used }), FREE, NOON, aReport({ minute: 1 })).verdict.kind).to.equal('exhausted')
    expect(decide(aState({ used: { minute: 60, day: 100 } }), FREE, NOON, aReport({ minute: -1 })).verdict.kind).to.equal('admitted')
  })

  it('with its last strike makes the request that it comes with a banned one, and with one fewer that request is the last strike', () => {
    const state = aState({ used: { minute: 60, day: 100 }, firstRejectionMs: NOON_MS - 2_000 })
    const bannedBy = (strikes: number) => decide(state, FREE, NOON, aReport({ strikes }))
    expect(bannedBy(58)).to.nested.include({ 'verdict.kind': 'exhausted', 'state.strikes': 59 })
    for (const strikes of [59, 60, 61])
      expect(bannedBy(strikes)).to.nested.include({
        'verdict.kind': 'banned',
        'state.bannedUntilMs': NOON_MS + 60_000,
        'state.banLevel': 1,
      })
  })

  it('leaves the version as it was', () => {
    expect(reconcile(aState({ version: 7 }), FREE, NOON, aReport({ minute: 1 })).version).to.equal(7)
  })

  it('is as good as the requests themselves: ten strikes told at once or one by one come to the same state', () => {
    const rules = someQuotaRules({ ban: someBanRules({ minStrikes: 500 }) })
    const state = aState({ used: { minute: 60, day: 100 }, firstRejectionMs: NOON_MS - 2_000 })
    let oneByOne: QuotaState = state
    for (let strike = 0; strike < 10; strike++) ({ state: oneByOne } = decide(oneByOne, rules, NOON))
    expect(reconcile(state, rules, NOON, aReport({ strikes: 10 }))).to.deep.equal(oneByOne)
  })
})

describe('a record of a key', () => {
  it('is outdated where a later one has decided, or was announced', () => {
    expect(isOutdated(aState({ version: 3 }), { version: 2 })).to.equal(true)
    expect(isOutdated(aState({ version: 3 }), { version: 3 }, 4)).to.equal(true)
    expect(isOutdated(undefined, { version: 3 }, 4)).to.equal(true)
  })

  it('is not outdated by earlier ones and its own, nor where none is known', () => {
    expect(isOutdated(aState({ version: 3 }), { version: 3 })).to.equal(false)
    expect(isOutdated(aState({ version: 3 }), { version: 4 }, 4)).to.equal(false)
    expect(isOutdated(undefined, { version: 1 })).to.equal(false)
    expect(isOutdated(undefined, { version: 0 }, 0)).to.equal(false)
  })

  it('that was read for this very request is never outdated', () => {
    expect(isOutdated(aState({ version: 3 }), { version: 2, justRead: true }, 9)).to.equal(false)
  })
})

describe('the usage of a key', () => {
  it('that was never seen is nothing', () => {
    const { quota, ...usage } = toUsage(undefined, FREE, NOON)
    expect(usage).to.deep.equal({ used: { minute: 0, day: 0 }, strikes: 0, banLevel: 0 })
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([60, 1000])
  })

  it('is what was charged in the current windows, beyond the limits too', () => {
    const state = aState({ used: { minute: 70, day: 100 }, strikes: 5, firstRejectionMs: NOON_MS })
    const { quota, ...usage } = toUsage(state, FREE, NOON)
    expect(usage).to.deep.equal({ used: { minute: 70, day: 100 }, strikes: 5, banLevel: 0 })
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([0, 900])
    expect(toUsage(state, FREE, at(NOON_MS + 60_000))).to.deep.include({ used: { minute: 0, day: 100 }, strikes: 0 })
  })

  it('tells of a ban up to its last millisecond, with nothing left, and of its level until it is forgotten', () => {
    const state = aState({ bannedUntilMs: NOON_MS + 5_000, banLevel: 2 })
    const during = toUsage(state, FREE, at(NOON_MS + 4_999))
    expect(during).to.include({ bannedUntilMs: NOON_MS + 5_000, banLevel: 2 })
    expect(during.quota.binding.remaining).to.equal(0)
    expect(toUsage(state, FREE, at(NOON_MS + 5_000)))
      .to.include({ banLevel: 2 })
      .and.not.to.have.property('bannedUntilMs')
    expect(toUsage(state, FREE, at(NOON_MS + 5_000 + FREE.ban.forgetAfterMs))).to.include({ banLevel: 0 })
  })
})

describe('lifting a ban', () => {
  it('takes away the ban, the strikes, the first rejection and what earlier bans would make of the next; the rest stays', () => {
    const state = aState({ bannedUntilMs: NOON_MS + 5_000, banLevel: 4, strikes: 30, firstRejectionMs: NOON_MS })
    expect(unban(state)).to.deep.equal(aState())
  })
})
