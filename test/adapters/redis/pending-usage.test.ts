import { expect } from 'chai'
import { PendingUsage } from '../../../src/adapters/redis/pending-usage.js'
import type { QuotaState, UsageDelta } from '../../../src/core/quota.js'
import { someQuotaRules } from '../../support/builders.js'
import { MovableClock } from '../../support/movable-clock.js'

const FREE = someQuotaRules()
const DAY_MS = 86_400_000

function aDelta(minute: number, day: number, { strikes = 0, used = 1 } = {}): UsageDelta {
  return { window: { minute, day }, strikes, used: { minute: used, day: used } }
}

function aBan(bannedUntilMs: number): QuotaState {
  const none = { minute: 0, day: 0 }
  return { window: none, used: none, strikes: 0, bannedUntilMs, banLevel: 1, unbannedAtMs: 0, keyVersion: 0 }
}

/** Adds these deltas as pending usage, and returns the sum. */
function sumPending(...deltas: readonly UsageDelta[]): UsageDelta | undefined {
  const pendingUsage = new PendingUsage(new MovableClock())
  for (const delta of deltas) pendingUsage.add('key_one', { rules: FREE, delta }, 0)
  return pendingUsage.remove('key_one')?.delta
}

describe('pending usage', () => {
  it('is reported only once: removing it a second time returns nothing', () => {
    const pendingUsage = new PendingUsage(new MovableClock())
    pendingUsage.add('key_one', { rules: FREE, delta: aDelta(100, 1) }, 0)
    pendingUsage.add('key_two', { rules: FREE, delta: aDelta(100, 1) }, 0)
    expect(pendingUsage.keyIds).to.have.members(['key_one', 'key_two'])
    expect(pendingUsage.remove('key_one')).to.deep.equal({ rules: FREE, delta: aDelta(100, 1) })
    expect(pendingUsage.remove('key_one')).to.equal(undefined)
    expect(pendingUsage.keyIds).to.deep.equal(['key_two'])
  })

  it('is bounded: of 60,000 keys, it keeps the 50,000 that were used last', () => {
    const pendingUsage = new PendingUsage(new MovableClock())
    for (let index = 0; index < 60_000; index++) pendingUsage.add(`key_${index}`, { rules: FREE, delta: aDelta(100, 1) }, 0)
    expect(pendingUsage.keyIds).to.have.lengthOf(50_000)
    expect([pendingUsage.remove('key_9999'), pendingUsage.remove('key_10000')].map(Boolean)).to.deep.equal([false, true])
  })

  for (const [what, ban, endMs] of [
    ['its day', undefined, 2 * DAY_MS],
    ['its ban, if that is later', aBan(2 * DAY_MS + 90_000), 2 * DAY_MS + 90_000],
    ['its day, if its ban ends earlier', aBan(DAY_MS + 90_000), 2 * DAY_MS],
  ] as const) {
    it(`is dropped at the end of ${what}, whatever the Unix time of the replica shows`, () => {
      const clock = new MovableClock()
      const pendingUsage = new PendingUsage(clock)
      const nowMs = 1.5 * DAY_MS
      pendingUsage.add('key_one', { rules: FREE, delta: aDelta(100, 1), ...(ban ? { ban } : {}) }, nowMs)
      clock.step(9 * DAY_MS)
      clock.advanceMs(endMs - nowMs - 1)
      expect(pendingUsage.keyIds).to.deep.equal(['key_one'])
      clock.advanceMs(2)
      expect([pendingUsage.keyIds, pendingUsage.remove('key_one')]).to.deep.equal([[], undefined])
    })
  }

  it('of a day that has already ended is not kept', () => {
    const pendingUsage = new PendingUsage(new MovableClock())
    pendingUsage.add('key_one', { rules: FREE, delta: aDelta(100, 1) }, 2 * DAY_MS)
    expect(pendingUsage.keyIds).to.deep.equal([])
  })

  it('includes the ban that ends last', () => {
    const pendingUsage = new PendingUsage(new MovableClock())
    for (const ban of [aBan(500), aBan(900), aBan(700), undefined])
      pendingUsage.add('key_one', { rules: FREE, delta: aDelta(100, 1), ...(ban ? { ban } : {}) }, 0)
    expect(pendingUsage.remove('key_one')?.ban).to.deep.equal(aBan(900))
  })

  it('keeps the rules that applied last', () => {
    const pendingUsage = new PendingUsage(new MovableClock())
    const pro = someQuotaRules({ limits: { minute: 300, day: 10_000 } })
    for (const rules of [FREE, pro]) pendingUsage.add('key_one', { rules, delta: aDelta(100, 1) }, 0)
    expect(pendingUsage.remove('key_one')?.rules).to.equal(pro)
  })

  for (const [what, deltas, expected] of [
    ['adds up charges, refunds and strikes', [aDelta(100, 1, { used: 3 }), aDelta(100, 1, { used: -1, strikes: 4 })], [100, 1, 4, 2, 2]],
    ['drops an ended minute', [aDelta(100, 1, { strikes: 5, used: 7 }), aDelta(101, 1, { strikes: 2, used: 3 })], [101, 1, 2, 3, 10]],
    ['drops a late delta of an ended minute', [aDelta(101, 1, { used: 3 }), aDelta(100, 1, { strikes: 5, used: -1 })], [101, 1, 0, 3, 2]],
    [
      'drops an ended day, and keeps a minute that spans midnight',
      [aDelta(100, 1, { used: 7 }), aDelta(100, 2, { used: 3 })],
      [100, 2, 0, 10, 3],
    ],
  ] as const) {
    it(what, () => {
      const [minute, day, strikes, usedMinute, usedDay] = expected
      expect(sumPending(...deltas)).to.deep.equal({ window: { minute, day }, strikes, used: { minute: usedMinute, day: usedDay } })
    })
  }
})
