import { expect } from 'chai'
import { decide, expiresAtMs, refund } from '../../src/core/quota.js'
import { minutePhaseSeconds, windowNumber, windowResetSeconds } from '../../src/core/window.js'
import type { BanRules, Charge, Limits, Quota, QuotaRules, QuotaState, Rejection, Verdict } from '../../src/core/quota.js'

// The numbers of config/plans.json.
const FREE: Limits = { minute: 60, day: 1000 }
const PRO: Limits = { minute: 300, day: 10_000 }
const BAN: BanRules = { graceMs: 1000, minStrikes: 60, firstMs: 60_000, longestMs: 86_400_000, forgetAfterMs: 86_400_000 }

const SECOND_MS = 1000
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const MIDNIGHT_MS = Date.UTC(2026, 10, 23)
const NOON_MS = MIDNIGHT_MS + 12 * HOUR_MS

describe('the minute phase of a key', () => {
  it('is a whole number from 0 to 59, the same each time', () => {
    for (const keyId of ['', 'k', 'key_7f3kQ', 'schlüssel', '\u{1f511}']) {
      expect(minutePhaseSeconds(keyId)).to.satisfy(Number.isInteger).and.to.be.within(0, 59)
      expect(minutePhaseSeconds(keyId)).to.equal(minutePhaseSeconds(keyId))
    }
  })

  for (const [ids, parseKeyId] of Object.entries({
    numbered: (number: number) => `key_${number}`,
    random: (number: number) => (number * 2_654_435_761 * 48_271).toString(36),
  })) {
    it(`spreads 10,000 ${ids} key ids evenly over the 60 seconds`, () => {
      const keysPerSecond = new Array<number>(60).fill(0)
      for (let number = 0; number < 10_000; number++) {
        const phaseSeconds = minutePhaseSeconds(parseKeyId(number))
        expect(phaseSeconds).to.be.within(0, 59)
        keysPerSecond[phaseSeconds] = (keysPerSecond[phaseSeconds] ?? 0) + 1
      }
      // 167 on average, with a standard deviation of 13.
      expect(Math.min(...keysPerSecond)).to.be.above(105)
      expect(Math.max(...keysPerSecond)).to.be.below(233)
    })
  }
})

describe('quota windows', () => {
  const phaseSeconds = 20

  it('the day starts at 00:00 UTC, whatever the phase of the key', () => {
    const number = windowNumber('day', { nowMs: MIDNIGHT_MS, phaseSeconds })
    expect(windowNumber('day', { nowMs: MIDNIGHT_MS - 1, phaseSeconds })).to.equal(number - 1)
    expect(windowNumber('day', { nowMs: MIDNIGHT_MS + DAY_MS - 1, phaseSeconds })).to.equal(number)
    expect(windowResetSeconds('day', number, { phaseSeconds })).to.equal((MIDNIGHT_MS + DAY_MS) / 1000)
  })

  it('the minute of a key with phase 20 starts at the 40th second of the clock', () => {
    const startMs = NOON_MS + 40 * SECOND_MS
    const number = windowNumber('minute', { nowMs: startMs, phaseSeconds })
    expect(number).to.equal(Math.floor((startMs / 1000 + 20) / 60))
    expect(windowNumber('minute', { nowMs: startMs - 1, phaseSeconds })).to.equal(number - 1)
    expect(windowNumber('minute', { nowMs: startMs + 59_999, phaseSeconds })).to.equal(number)
    expect(windowResetSeconds('minute', number, { phaseSeconds })).to.equal(startMs / 1000 + 60)
  })

  it('a window ends in the very millisecond in which the next begins, for every phase', () => {
    for (const name of ['minute', 'day'] as const) {
      for (let phase = 0; phase < 60; phase++) {
        const at = { nowMs: NOON_MS + 12_345, phaseSeconds: phase }
        const number = windowNumber(name, at)
        const resetMs = windowResetSeconds(name, number, at) * 1000
        expect(windowNumber(name, { ...at, nowMs: resetMs - 1 })).to.equal(number)
        expect(windowNumber(name, { ...at, nowMs: resetMs })).to.equal(number + 1)
      }
    }
  })

  it('a clock that steps back over the start of a minute does not open that minute twice', () => {
    const caller = aCaller()
    caller.ask(NOON_MS, { times: 60 })
    const rejection = refused(caller.ask(NOON_MS - 300))
    expect(rejection).to.include({ kind: 'exhausted', window: 'minute', retryAfterSeconds: 61 })
    expect(rejection.quota.minute).to.deep.equal({ limit: 60, remaining: 0, resetSeconds: NOON_MS / 1000 + 60 })
    expect(caller.ask(NOON_MS + 59_999).kind).to.equal('exhausted')
  })

  it('a clock that steps back over midnight does not open that day twice', () => {
    const caller = aCaller({ limits: { minute: 100, day: 60 } })
    caller.ask(MIDNIGHT_MS, { times: 60 })
    const rejection = refused(caller.ask(MIDNIGHT_MS - 300))
    expect(rejection).to.include({ kind: 'exhausted', window: 'day' })
    expect(rejection.quota.day).to.deep.equal({ limit: 60, remaining: 0, resetSeconds: (MIDNIGHT_MS + DAY_MS) / 1000 })
  })

  it('a charge that a clock behind by a minute makes goes to the minute that is open', () => {
    const caller = aCaller()
    caller.ask(NOON_MS)
    const verdict = admitted(caller.ask(NOON_MS - 300))
    expect(verdict.quota.minute.remaining).to.equal(58)
    expect(caller.refund(verdict.charge, NOON_MS).minute.remaining).to.equal(59)
  })
})

describe('an admitted request', () => {
  it('is charged to both windows, and both are reported with their own limit, remaining and reset', () => {
    const { quota, charge } = admitted(aCaller({ phaseSeconds: 20 }).ask(NOON_MS + 250))
    expect(quota).to.deep.equal({
      nowMs: NOON_MS + 250,
      minute: { limit: 60, remaining: 59, resetSeconds: NOON_MS / 1000 + 40 },
      day: { limit: 1000, remaining: 999, resetSeconds: (MIDNIGHT_MS + DAY_MS) / 1000 },
      binding: { limit: 60, remaining: 59, resetSeconds: NOON_MS / 1000 + 40 },
    })
    expect(charge).to.deep.equal({ minute: NOON_MS / MINUTE_MS, day: MIDNIGHT_MS / DAY_MS })
  })

  it('reports the minute while the minute has fewer requests left, and the day from the tie on', () => {
    const caller = aCaller()
    for (let minute = 0; minute < 15; minute++) caller.ask(NOON_MS + minute * MINUTE_MS, { times: 60 })
    caller.ask(NOON_MS + 15 * MINUTE_MS, { times: 39 })

    const afterwardsMs = NOON_MS + 16 * MINUTE_MS
    const oneFewerInMinute = admitted(caller.ask(afterwardsMs)).quota
    expect([oneFewerInMinute.minute.remaining, oneFewerInMinute.day.remaining]).to.deep.equal([59, 60])
    expect(oneFewerInMinute.binding).to.deep.equal(oneFewerInMinute.minute)

    const tie = admitted(caller.ask(afterwardsMs + MINUTE_MS)).quota
    expect([tie.minute.remaining, tie.day.remaining]).to.deep.equal([59, 59])
    expect(tie.binding).to.deep.equal(tie.day).and.to.include({ limit: 1000 })

    const fewerInDay = admitted(caller.ask(afterwardsMs + 2 * MINUTE_MS)).quota
    expect([fewerInDay.minute.remaining, fewerInDay.day.remaining]).to.deep.equal([59, 58])
    expect(fewerInDay.binding).to.deep.equal(fewerInDay.day)
  })

  it('finds Remaining back at Limit when the minute has been reset', () => {
    const caller = aCaller()
    caller.ask(NOON_MS, { times: 60 })
    expect(admitted(caller.ask(NOON_MS + MINUTE_MS)).quota.minute).to.deep.equal({
      limit: 60,
      remaining: 59,
      resetSeconds: NOON_MS / 1000 + 120,
    })
  })

  it('finds Remaining back at Limit when the day has been reset', () => {
    const caller = aCaller()
    exhaustDay(caller, NOON_MS)
    expect(caller.ask(MIDNIGHT_MS + DAY_MS - 1).kind).to.equal('exhausted')
    expect(admitted(caller.ask(MIDNIGHT_MS + DAY_MS)).quota.day).to.include({ remaining: 999 })
  })
})

describe('a request over a limit', () => {
  it('a burst of 1,000 in one second serves 60 and leaves 60 requests of the day spent', () => {
    const caller = aCaller()
    const verdicts = caller.ask(NOON_MS, { times: 1000, everyMs: 1 })
    expect(count(verdicts, 'admitted')).to.equal(60)
    expect(count(verdicts, 'exhausted')).to.equal(940)
    expect(admitted(caller.ask(NOON_MS + MINUTE_MS)).quota.day.remaining).to.equal(1000 - 60 - 1)
  })

  it('a burst of 1,000 over a whole minute serves 60, is banned, and leaves 60 requests of the day spent', () => {
    const caller = aCaller()
    const verdicts = caller.ask(NOON_MS, { times: 1000, everyMs: 60 })
    expect(count(verdicts, 'admitted')).to.equal(60)
    expect(verdicts.at(-1)?.kind).to.equal('banned')
    expect(admitted(caller.ask(NOON_MS + 5 * MINUTE_MS)).quota.day.remaining).to.equal(1000 - 60 - 1)
  })

  it('17 minutes of five times too many requests serve exactly 1,000', () => {
    const caller = aCaller()
    let served = 0
    for (let minute = 0; minute < 17; minute++) {
      served += count(caller.ask(NOON_MS + minute * MINUTE_MS, { times: 300, everyMs: 3 }), 'admitted')
    }
    expect(served).to.equal(1000)
  })

  it('the last request of the minute is served and the next is refused until the minute ends', () => {
    const caller = aCaller()
    expect(admitted(caller.ask(NOON_MS, { times: 60 }).at(-1)).quota.minute.remaining).to.equal(0)
    const rejection = refused(caller.ask(NOON_MS + 500))
    expect(rejection).to.deep.equal({
      kind: 'exhausted',
      window: 'minute',
      retryAfterSeconds: 60,
      quota: {
        nowMs: NOON_MS + 500,
        minute: { limit: 60, remaining: 0, resetSeconds: NOON_MS / 1000 + 60 },
        day: { limit: 1000, remaining: 940, resetSeconds: (MIDNIGHT_MS + DAY_MS) / 1000 },
        binding: { limit: 60, remaining: 0, resetSeconds: NOON_MS / 1000 + 60 },
      },
    })
  })

  it('Retry-After is in whole seconds, rounded up, and at least 1', () => {
    const caller = aCaller()
    caller.ask(NOON_MS, { times: 60 })
    const retryAfter = (ms: number) => refused(caller.ask(NOON_MS + ms)).retryAfterSeconds
    expect([0, 1, 999, 1000, 58_999, 59_000, 59_001, 59_999].map(retryAfter)).to.deep.equal([60, 60, 60, 59, 2, 1, 1, 1])
  })

  it('waits for the day when only the day is exhausted', () => {
    const caller = aCaller()
    exhaustDay(caller, NOON_MS)
    const rejection = refused(caller.ask(NOON_MS + HOUR_MS))
    expect(rejection).to.include({ kind: 'exhausted', window: 'day', retryAfterSeconds: 11 * 3600 })
    expect(rejection.quota.minute).to.include({ limit: 60, remaining: 60 })
    expect(rejection.quota.binding).to.deep.equal({ limit: 1000, remaining: 0, resetSeconds: (MIDNIGHT_MS + DAY_MS) / 1000 })
  })

  it('waits for the day when both are exhausted and the day ends last', () => {
    const caller = aCaller({ limits: { minute: 60, day: 60 } })
    caller.ask(NOON_MS, { times: 60 })
    const rejection = refused(caller.ask(NOON_MS))
    expect(rejection).to.include({ window: 'day', retryAfterSeconds: 12 * 3600 })
    expect(rejection.quota.binding).to.deep.equal(rejection.quota.day)
    expect(rejection.quota.minute).to.include({ remaining: 0, resetSeconds: NOON_MS / 1000 + 60 })
  })

  it('waits for the minute when both are exhausted and the minute reaches over midnight', () => {
    const caller = aCaller({ limits: { minute: 60, day: 60 }, phaseSeconds: 20 })
    const lateMs = MIDNIGHT_MS - 10 * SECOND_MS
    caller.ask(lateMs, { times: 60 })
    const rejection = refused(caller.ask(lateMs))
    expect(rejection).to.include({ window: 'minute', retryAfterSeconds: 50 })
    expect(rejection.quota.binding).to.deep.equal(rejection.quota.minute)
    expect(caller.ask(lateMs + 49_999).kind).to.equal('exhausted')
    expect(caller.ask(lateMs + 50_000).kind).to.equal('admitted')
  })

  it('a tie goes to the day when both are exhausted and end together', () => {
    const caller = aCaller({ limits: { minute: 60, day: 60 } })
    const lateMs = MIDNIGHT_MS - 10 * SECOND_MS
    const last = admitted(caller.ask(lateMs, { times: 60 }).at(-1))
    const rejection = refused(caller.ask(lateMs))
    expect(rejection).to.include({ window: 'day', retryAfterSeconds: 10 })
    expect(rejection.quota.binding).to.deep.equal(last.quota.binding)
  })
})

describe('a ban', () => {
  it('rejections up to 1,000 ms after the first of the minute are no strikes', () => {
    const caller = aCaller()
    caller.ask(NOON_MS, { times: 60 })
    expect(caller.ask(NOON_MS).kind).to.equal('exhausted')
    expect(count(caller.ask(NOON_MS + 1000, { times: 500 }), 'exhausted')).to.equal(500)
    expect(count(caller.ask(NOON_MS + 1001, { times: 59 }), 'exhausted')).to.equal(59)
    expect(caller.ask(NOON_MS + 1001).kind).to.equal('banned')
  })

  it('1,000 requests in flight when the limit is reached bring none', () => {
    const caller = aCaller()
    caller.ask(NOON_MS, { times: 60 })
    expect(count(caller.ask(NOON_MS, { times: 1000, everyMs: 1 }), 'exhausted')).to.equal(1000)
    expect(caller.ask(NOON_MS + MINUTE_MS).kind).to.equal('admitted')
  })

  it('on Free begins with exactly the 60th strike in a minute and lasts 60 s from that request on', () => {
    const caller = aCaller()
    caller.ask(NOON_MS, { times: 61 })
    const strikes = caller.ask(NOON_MS + 1500, { times: 60 })
    expect(strikes.map(({ kind }) => kind)).to.deep.equal([...new Array<string>(59).fill('exhausted'), 'banned'])
    const endSeconds = NOON_MS / 1000 + 62
    expect(strikes.at(-1)).to.deep.equal({
      kind: 'banned',
      retryAfterSeconds: 60,
      quota: {
        nowMs: NOON_MS + 1500,
        minute: { limit: 60, remaining: 0, resetSeconds: endSeconds },
        day: { limit: 1000, remaining: 0, resetSeconds: endSeconds },
        binding: { limit: 60, remaining: 0, resetSeconds: endSeconds },
      },
    })
    expect(caller.ask(NOON_MS + 61_499).kind).to.equal('banned')
    expect(caller.ask(NOON_MS + 61_500).kind).to.equal('admitted')
  })

  it('on Pro begins with the 300th strike: as many as the minute limit, where that is higher', () => {
    const caller = aCaller({ limits: PRO })
    caller.ask(NOON_MS, { times: 301 })
    expect(count(caller.ask(NOON_MS + 1001, { times: 299 }), 'exhausted')).to.equal(299)
    expect(caller.ask(NOON_MS + 1001).kind).to.equal('banned')
  })

  it('with a minute limit below 60 still takes 60 strikes', () => {
    const caller = aCaller({ limits: { minute: 5, day: 1000 } })
    caller.ask(NOON_MS, { times: 6 })
    expect(count(caller.ask(NOON_MS + 1001, { times: 59 }), 'exhausted')).to.equal(59)
    expect(caller.ask(NOON_MS + 1001).kind).to.equal('banned')
  })

  it('does not come of 59 strikes in each of two minutes', () => {
    const caller = aCaller()
    for (const startMs of [NOON_MS, NOON_MS + MINUTE_MS, NOON_MS + 2 * MINUTE_MS]) {
      expect(count(caller.ask(startMs, { times: 61 }), 'admitted')).to.equal(60)
      expect(count(caller.ask(startMs + 30_000, { times: 59 }), 'exhausted')).to.equal(59)
    }
  })

  it('never comes to a client that asks once a minute on an exhausted day', () => {
    const caller = aCaller()
    exhaustDay(caller, MIDNIGHT_MS)
    const verdicts = caller.ask(MIDNIGHT_MS + HOUR_MS, { times: 23 * 60, everyMs: MINUTE_MS })
    expect(count(verdicts, 'exhausted')).to.equal(23 * 60)
    expect(caller.ask(MIDNIGHT_MS + DAY_MS).kind).to.equal('admitted')
  })

  it('comes of rejections by the day as well as by the minute', () => {
    const caller = aCaller()
    exhaustDay(caller, NOON_MS)
    caller.ask(NOON_MS + HOUR_MS)
    expect(caller.ask(NOON_MS + HOUR_MS + 1001, { times: 60 }).at(-1)?.kind).to.equal('banned')
  })

  it('is not extended by traffic, and nothing is charged or held against the caller for it', () => {
    const caller = aCaller()
    const endMs = earnBan(caller, NOON_MS)
    const verdicts = caller.ask(NOON_MS + 2 * SECOND_MS, { times: 5900, everyMs: 10 })
    expect(count(verdicts, 'banned')).to.equal(5900)
    expect(caller.ask(endMs - 1).kind).to.equal('banned')
    const afterwards = admitted(caller.ask(endMs)).quota
    expect(afterwards.minute.remaining).to.equal(59)
    expect(afterwards.day.remaining).to.equal(1000 - 60 - 1)
  })

  it('reports one and the same reset from its beginning to its end', () => {
    const caller = aCaller()
    earnBan(caller, NOON_MS)
    const verdicts = caller.ask(NOON_MS + 2 * SECOND_MS, { times: 590, everyMs: 100 }).map(refused)
    expect(new Set(verdicts.map(({ quota }) => quota.binding.resetSeconds))).to.deep.equal(new Set([NOON_MS / 1000 + 62]))
    expect(verdicts.map(({ retryAfterSeconds }) => retryAfterSeconds)).to.deep.equal(
      verdicts.map(({ quota: { nowMs } }) => Math.ceil((NOON_MS + 61_001 - nowMs) / 1000)),
    )
  })

  it('lasts 60 s, then twice as long each time, up to 24 h and not longer', () => {
    const caller = aCaller()
    const lengthsMs: number[] = []
    let startMs = NOON_MS
    for (let ban = 0; ban < 14; ban++) {
      const endMs = earnBan(caller, startMs)
      lengthsMs.push(endMs - startMs - 1001)
      startMs = nextMinute(endMs)
    }
    const doubled = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].map((minutes) => minutes * MINUTE_MS)
    expect(lengthsMs).to.deep.equal([...doubled, DAY_MS, DAY_MS, DAY_MS])
  })

  it('is a first one again 24 h after the end of the last, and not a millisecond earlier', () => {
    const lengthMs = (beginsAfterEndMs: number) => {
      const caller = aCaller()
      earnBan(caller, NOON_MS + 30_000)
      const lastEndMs = earnBan(caller, NOON_MS + 2 * MINUTE_MS + 30_000)
      const beginsMs = lastEndMs + beginsAfterEndMs
      return earnBan(caller, beginsMs - 1001) - beginsMs
    }
    expect(lengthMs(DAY_MS - 1)).to.equal(4 * MINUTE_MS)
    expect(lengthMs(DAY_MS)).to.equal(MINUTE_MS)
  })

  it('that is a first one again is followed by one of 120 s: forgotten bans do not count', () => {
    const caller = aCaller()
    earnBan(caller, NOON_MS)
    earnBan(caller, NOON_MS + 5 * MINUTE_MS)
    const laterMs = NOON_MS + 3 * DAY_MS
    expect(earnBan(caller, laterMs)).to.equal(laterMs + 1001 + MINUTE_MS)
    expect(earnBan(caller, laterMs + 5 * MINUTE_MS)).to.equal(laterMs + 5 * MINUTE_MS + 1001 + 2 * MINUTE_MS)
  })

  it('lets the counting of strikes start afresh, with a new grace, even in the same minute', () => {
    const caller = aCaller({ ban: { firstMs: 5000 } })
    caller.ask(NOON_MS, { times: 61 })
    expect(caller.ask(NOON_MS + 1001, { times: 60 }).at(-1)?.kind).to.equal('banned')
    expect(count(caller.ask(NOON_MS + 6001, { times: 200 }), 'exhausted')).to.equal(200)
    expect(count(caller.ask(NOON_MS + 7001, { times: 200 }), 'exhausted')).to.equal(200)
    expect(count(caller.ask(NOON_MS + 7002, { times: 59 }), 'exhausted')).to.equal(59)
    expect(caller.ask(NOON_MS + 7002).kind).to.equal('banned')
  })

  it('that ends within an exhausted minute sends the caller to the end of that minute', () => {
    const caller = aCaller({ ban: { firstMs: 5000 } })
    caller.ask(NOON_MS, { times: 61 })
    const rejection = refused(caller.ask(NOON_MS + 1001, { times: 60 }).at(-1))
    expect(rejection).to.include({ kind: 'banned', window: 'minute', retryAfterSeconds: 59 })
    expect(rejection.quota.binding).to.deep.equal({ limit: 60, remaining: 0, resetSeconds: NOON_MS / 1000 + 60 })
  })

  it('on an exhausted day sends the caller to the end of the day', () => {
    const caller = aCaller()
    exhaustDay(caller, NOON_MS)
    caller.ask(NOON_MS + HOUR_MS)
    const rejection = refused(caller.ask(NOON_MS + HOUR_MS + 2000, { times: 60 }).at(-1))
    expect(rejection).to.include({ kind: 'banned', window: 'day', retryAfterSeconds: 11 * 3600 - 2 })
    expect(rejection.quota.binding).to.deep.equal({ limit: 1000, remaining: 0, resetSeconds: (MIDNIGHT_MS + DAY_MS) / 1000 })
  })

  it('that outlasts an exhausted day sends the caller to its own end', () => {
    const caller = aCaller({ limits: { minute: 60, day: 60 } })
    const endMs = earnBan(caller, MIDNIGHT_MS + DAY_MS - 30_000)
    const rejection = refused(caller.ask(MIDNIGHT_MS + DAY_MS - 1000))
    expect(rejection).to.include({ kind: 'banned', retryAfterSeconds: 33 }).and.not.to.have.property('window')
    expect(rejection.quota.binding.resetSeconds).to.equal(Math.ceil(endMs / 1000))
  })
})

describe('a refund', () => {
  it('within the minute gives the request back in both windows', () => {
    const caller = aCaller()
    const { charge } = admitted(caller.ask(NOON_MS, { times: 60 })[0])
    const quota = caller.refund(charge, NOON_MS + 30_000)
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([1, 941])
    expect(quota.binding).to.deep.equal(quota.minute)
    expect(caller.ask(NOON_MS + 30_000).kind).to.equal('admitted')
    expect(caller.ask(NOON_MS + 30_000).kind).to.equal('exhausted')
  })

  it('in a later minute gives it back in the day only', () => {
    const caller = aCaller()
    const { charge } = admitted(caller.ask(NOON_MS))
    caller.ask(NOON_MS + MINUTE_MS)
    const quota = caller.refund(charge, NOON_MS + MINUTE_MS)
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([59, 999])
  })

  it('after midnight, in the minute of the request still, gives it back in the minute only', () => {
    const caller = aCaller({ phaseSeconds: 20 })
    const { charge } = admitted(caller.ask(MIDNIGHT_MS - 1000))
    caller.ask(MIDNIGHT_MS)
    const quota = caller.refund(charge, MIDNIGHT_MS + 1000)
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([59, 999])
  })

  it('on a later day gives nothing back', () => {
    const caller = aCaller()
    const { charge } = admitted(caller.ask(NOON_MS))
    caller.ask(NOON_MS + DAY_MS)
    const quota = caller.refund(charge, NOON_MS + DAY_MS)
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([59, 999])
  })

  it('never gives more than was used, even when it is made twice', () => {
    const caller = aCaller()
    const { charge } = admitted(caller.ask(NOON_MS))
    caller.refund(charge, NOON_MS)
    const quota = caller.refund(charge, NOON_MS)
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([60, 1000])
    expect(admitted(caller.ask(NOON_MS)).quota.minute.remaining).to.equal(59)
  })

  it('to a key that has been forgotten gives nothing', () => {
    const caller = aCaller()
    const { charge } = admitted(aCaller().ask(NOON_MS))
    const quota = caller.refund(charge, NOON_MS)
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([60, 1000])
  })

  it('during a ban still says that nothing is left until the ban ends', () => {
    const caller = aCaller()
    const [first] = caller.ask(NOON_MS, { times: 61 })
    caller.ask(NOON_MS + 1001, { times: 60 })
    const quota = caller.refund(admitted(first).charge, NOON_MS + 1500)
    expect([quota.binding.remaining, quota.minute.remaining, quota.day.remaining]).to.deep.equal([0, 0, 0])
    expect(quota.binding.resetSeconds).to.equal(Math.ceil((NOON_MS + 1001 + 60_000) / 1000))
  })

  it('neither lifts a ban nor takes strikes back', () => {
    const caller = aCaller()
    const { charge } = admitted(caller.ask(NOON_MS, { times: 61 })[0])
    caller.ask(NOON_MS + 1001, { times: 59 })
    caller.refund(charge, NOON_MS + 1001)
    expect(caller.ask(NOON_MS + 1001, { times: 2 }).map(({ kind }) => kind)).to.deep.equal(['admitted', 'banned'])
    caller.refund(charge, NOON_MS + 1001)
    expect(caller.ask(NOON_MS + 1001).kind).to.equal('banned')
  })
})

describe('shadow mode', () => {
  it('admits what would be refused, says so, and charges nothing for it', () => {
    const caller = aCaller({ mode: 'shadow' })
    const verdicts = caller.ask(NOON_MS, { times: 1000, everyMs: 1 })
    expect(count(verdicts, 'admitted')).to.equal(1000)
    expect(verdicts.filter((verdict) => 'charge' in verdict)).to.have.lengthOf(60)
    expect(verdicts.slice(60).every((verdict) => 'shadowed' in verdict && verdict.shadowed === 'exhausted')).to.equal(true)
    expect(admitted(caller.ask(NOON_MS + MINUTE_MS)).quota.day.remaining).to.equal(1000 - 60 - 1)
  })

  it('reports the quota that a rejection would have reported', () => {
    for (const times of [61, 200]) {
      const enforced = aCaller().ask(NOON_MS, { times, everyMs: 50 })
      const shadowed = aCaller({ mode: 'shadow' }).ask(NOON_MS, { times, everyMs: 50 })
      expect(shadowed.at(-1)).to.deep.equal({ kind: 'admitted', shadowed: enforced.at(-1)?.kind, quota: enforced.at(-1)?.quota })
    }
  })

  it('says banned from the request on that would have brought the ban, and leaves the state that enforcement leaves', () => {
    const enforced = aCaller()
    const shadowed = aCaller({ mode: 'shadow' })
    for (const caller of [enforced, shadowed]) {
      caller.ask(NOON_MS, { times: 61 })
      caller.ask(NOON_MS + 1001, { times: 60 })
    }
    expect(shadowed.ask(NOON_MS + 1001)).to.include({ kind: 'admitted', shadowed: 'banned' })
    expect(shadowed.state()).to.deep.equal(enforced.state())
  })
})

describe('a change of limits in mid-window', () => {
  it('downwards refuses from the next request on, with 0 remaining and never less', () => {
    const caller = aCaller({ limits: PRO })
    caller.ask(NOON_MS, { times: 200 })
    caller.changeLimits(FREE)
    const rejection = refused(caller.ask(NOON_MS + 1000))
    expect(rejection).to.include({ kind: 'exhausted', window: 'minute', retryAfterSeconds: 59 })
    expect(rejection.quota.minute).to.deep.equal({ limit: 60, remaining: 0, resetSeconds: NOON_MS / 1000 + 60 })
    expect(rejection.quota.day).to.include({ limit: 1000, remaining: 800 })
  })

  it('upwards admits from the next request on, and what was used stays used', () => {
    const caller = aCaller()
    caller.ask(NOON_MS, { times: 61 })
    caller.changeLimits(PRO)
    const { quota } = admitted(caller.ask(NOON_MS + 1000))
    expect(quota.minute).to.include({ limit: 300, remaining: 300 - 61 })
    expect(quota.day).to.include({ limit: 10_000, remaining: 10_000 - 61 })
  })

  it('neither lifts nor lengthens a ban', () => {
    const caller = aCaller()
    const endMs = earnBan(caller, NOON_MS)
    caller.changeLimits(PRO)
    expect(refused(caller.ask(endMs - 1)).quota.binding).to.deep.equal({ limit: 300, remaining: 0, resetSeconds: Math.ceil(endMs / 1000) })
    expect(caller.ask(endMs).kind).to.equal('admitted')
  })
})

describe('the state of a key', () => {
  it('that was never banned may be forgotten when its day and its minute are over', () => {
    for (const phaseSeconds of [0, 20]) {
      const caller = aCaller({ phaseSeconds })
      caller.ask(NOON_MS)
      expect(expiresAtMs(caller.state(), BAN)).to.equal(MIDNIGHT_MS + DAY_MS)
      caller.ask(MIDNIGHT_MS + DAY_MS - 1)
      expect(expiresAtMs(caller.state(), BAN)).to.be.within(MIDNIGHT_MS + DAY_MS + phaseSeconds * 1000, MIDNIGHT_MS + DAY_MS + MINUTE_MS)
    }
  })

  it('that was banned may be forgotten when its next ban would be a first one again', () => {
    const caller = aCaller()
    const endMs = earnBan(caller, NOON_MS)
    expect(expiresAtMs(caller.state(), BAN)).to.equal(endMs + DAY_MS)
  })
})

interface CallerOverrides {
  readonly limits?: Limits
  readonly ban?: Partial<BanRules>
  readonly mode?: QuotaRules['mode']
  readonly phaseSeconds?: number
}

/** One key on the Free plan, never seen before; its minute starts with the minute of the clock. */
function aCaller({ limits = FREE, ban = {}, mode = 'enforce', phaseSeconds = 0 }: CallerOverrides = {}) {
  let rules: QuotaRules = { limits, mode, ban: { ...BAN, ...ban } }
  let state: QuotaState | undefined

  function ask(nowMs: number): Verdict
  function ask(nowMs: number, many: { times: number; everyMs?: number }): Verdict[]
  function ask(nowMs: number, many?: { times: number; everyMs?: number }): Verdict | Verdict[] {
    if (!many) {
      const decision = decide(state, rules, { nowMs, phaseSeconds })
      state = decision.state
      return decision.verdict
    }
    const { times, everyMs = 0 } = many
    return Array.from({ length: times }, (_, index) => ask(nowMs + index * everyMs))
  }

  return {
    ask,
    refund(charge: Charge, nowMs: number): Quota {
      const refunded = refund(state, charge, rules, { nowMs, phaseSeconds })
      state = refunded.state
      return refunded.quota
    },
    changeLimits(changed: Limits): void {
      rules = { ...rules, limits: changed }
    },
    state(): QuotaState {
      if (!state) throw new Error('This key was never seen')
      return state
    },
  }
}

type Caller = ReturnType<typeof aCaller>

/** Uses up the 1,000 requests of a day in 17 minutes, without a rejection. */
function exhaustDay(caller: Caller, fromMs: number): void {
  for (let minute = 0; minute < 16; minute++) caller.ask(fromMs + minute * MINUTE_MS, { times: 60 })
  caller.ask(fromMs + 16 * MINUTE_MS, { times: 40 })
}

/** Brings a ban on Free's minute limit, which begins 1,001 ms after `fromMs`, and returns its end. */
function earnBan(caller: Caller, fromMs: number): number {
  caller.ask(fromMs, { times: 61 })
  const kinds = caller.ask(fromMs + 1001, { times: 60 }).map(({ kind }) => kind)
  expect(kinds.lastIndexOf('exhausted'), 'the last rejection before the ban').to.equal(58)
  expect(kinds.at(-1)).to.equal('banned')
  return caller.state().bannedUntilMs
}

function nextMinute(ms: number): number {
  return Math.ceil(ms / MINUTE_MS) * MINUTE_MS
}

function admitted(verdict: Verdict | undefined): Extract<Verdict, { charge: Charge }> {
  if (!verdict || !('charge' in verdict)) throw new Error(`Expected an admission, got ${JSON.stringify(verdict)}`)
  return verdict
}

function refused(verdict: Verdict | undefined): Rejection {
  if (!verdict || verdict.kind === 'admitted') throw new Error(`Expected a rejection, got ${JSON.stringify(verdict)}`)
  return verdict
}

function count(verdicts: readonly Verdict[], kind: Verdict['kind']): number {
  return verdicts.filter((verdict) => verdict.kind === kind).length
}
