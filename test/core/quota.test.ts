import { expect } from 'chai'
import { decide, expiresAtMs, refund } from '../../src/core/quota.js'
import type { Charge, Limits, QuotaRules, QuotaState, Rejection, Verdict } from '../../src/core/quota.js'
import { someBanRules } from '../support/builders.js'

// The plans and ban rules of config/plans.json.
const FREE: Limits = { minute: 60, day: 1000 }
const PRO: Limits = { minute: 300, day: 10_000 }
const BAN = someBanRules()

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const MIDNIGHT_MS = Date.UTC(2026, 10, 23)
const NOON_MS = MIDNIGHT_MS + 12 * HOUR_MS
const NEXT_MIDNIGHT_SECONDS = (MIDNIGHT_MS + DAY_MS) / 1000

describe('an admitted request', () => {
  it('is charged to both windows, and the quota describes both', () => {
    const { quota, charge } = admitted(new Caller({ phaseSeconds: 20 }).take(NOON_MS + 250))
    const minute = { limit: 60, remaining: 59, resetSeconds: NOON_MS / 1000 + 40 }
    const day = { limit: 1000, remaining: 999, resetSeconds: NEXT_MIDNIGHT_SECONDS }
    expect(quota).to.deep.equal({ nowMs: NOON_MS + 250, minute, day, binding: minute })
    expect(charge).to.deep.equal({ minute: NOON_MS / MINUTE_MS, day: MIDNIGHT_MS / DAY_MS })
  })

  it('has the window with fewer requests left as its binding window, and the day if both have the same number', () => {
    for (const [usedBefore, binding] of [
      [939, 'minute'],
      [940, 'day'],
      [941, 'day'],
    ] as const) {
      const caller = new Caller()
      for (let used = 0; used < usedBefore; used++) caller.take(NOON_MS + Math.floor(used / 60) * MINUTE_MS)
      const { quota } = admitted(caller.take(NOON_MS + HOUR_MS))
      expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([59, 999 - usedBefore])
      expect(quota.binding).to.deep.equal(quota[binding])
    }
  })
})

describe('a rejected request', () => {
  it('uses up no quota: a burst of 1,000 requests in a second uses only the 60 that are admitted', () => {
    const caller = new Caller()
    const verdicts = caller.takeMany(1000, NOON_MS, { everyMs: 1 })
    expect([count(verdicts, 'admitted'), count(verdicts, 'exhausted')]).to.deep.equal([60, 940])
    expect(admitted(caller.take(NOON_MS + MINUTE_MS)).quota.day.remaining).to.equal(1000 - 60 - 1)
  })

  it('describes the exhausted window', () => {
    const caller = new Caller()
    expect(admitted(caller.takeMany(60, NOON_MS).at(-1)).quota.minute.remaining).to.equal(0)
    const minute = { limit: 60, remaining: 0, resetSeconds: NOON_MS / 1000 + 60 }
    const day = { limit: 1000, remaining: 940, resetSeconds: NEXT_MIDNIGHT_SECONDS }
    const quota = { nowMs: NOON_MS + 500, minute, day, binding: minute }
    expect(caller.take(NOON_MS + 500)).to.deep.equal({ kind: 'exhausted', window: 'minute', retryAfterSeconds: 60, quota })
  })

  it('gets Retry-After in whole seconds, rounded up, and at least 1', () => {
    const caller = new Caller()
    caller.takeMany(60, NOON_MS)
    const retryAfter = (ms: number) => rejected(caller.take(NOON_MS + ms)).retryAfterSeconds
    expect([0, 1, 999, 1000, 58_999, 59_000, 59_001, 59_999].map(retryAfter)).to.deep.equal([60, 60, 60, 59, 2, 1, 1, 1])
  })

  for (const [what, dayLimit, atMs, window, retryAfterSeconds] of [
    ['the minute if only the minute is exhausted', 1000, NOON_MS, 'minute', 60],
    ['the day if both are exhausted and the day ends last', 60, NOON_MS, 'day', 12 * 3600],
    ['the minute if both are exhausted and the minute ends after midnight', 60, MIDNIGHT_MS + DAY_MS - 10_000, 'minute', 50],
  ] as const) {
    it(`waits for ${what}`, () => {
      const caller = new Caller({ limits: { minute: 60, day: dayLimit }, phaseSeconds: window === 'minute' && dayLimit === 60 ? 20 : 0 })
      caller.takeMany(60, atMs)
      const rejection = rejected(caller.take(atMs))
      expect(rejection).to.include({ kind: 'exhausted', window, retryAfterSeconds })
      expect(rejection.quota.binding).to.deep.equal(rejection.quota[window])
    })
  }

  for (const [what, backMs, retryAfterSeconds] of [
    ['to before the start of the minute', 300, 61],
    ['by an hour', 60 * MINUTE_MS, 3_660],
  ] as const) {
    it(`is still rejected if the clock steps back ${what}`, () => {
      const caller = new Caller()
      caller.takeMany(60, NOON_MS)
      expect(caller.take(NOON_MS - backMs)).to.include({ kind: 'exhausted', window: 'minute', retryAfterSeconds })
      expect(caller.take(NOON_MS + 59_999).kind).to.equal('exhausted')
      expect(caller.take(NOON_MS + MINUTE_MS).kind).to.equal('admitted')
    })
  }

  it('is still rejected if the clock steps back over midnight: the day and the minute of the next day are kept', () => {
    const caller = new Caller({ limits: { minute: 60, day: 60 } })
    caller.takeMany(60, MIDNIGHT_MS)
    const rejection = rejected(caller.take(MIDNIGHT_MS - 10 * MINUTE_MS))
    expect(rejection).to.include({ window: 'day', retryAfterSeconds: (DAY_MS + 10 * MINUTE_MS) / 1000 })
    expect(caller.take(MIDNIGHT_MS + DAY_MS - 1).kind).to.equal('exhausted')
  })

  it('is followed by an admitted one if the clock was ahead by more than an hour and is corrected', () => {
    const caller = new Caller()
    caller.takeMany(61, NOON_MS + 61 * MINUTE_MS)
    const { quota } = admitted(caller.take(NOON_MS))
    expect(quota.minute).to.deep.equal({ limit: 60, remaining: 59, resetSeconds: NOON_MS / 1000 + 60 })
    expect(quota.day.remaining).to.equal(1000 - 60 - 1)
  })

  it('is followed by an admitted one if the clock was ahead by two days and is corrected', () => {
    const caller = new Caller({ limits: { minute: 60, day: 60 } })
    caller.takeMany(60, NOON_MS + 2 * DAY_MS)
    expect(admitted(caller.take(NOON_MS)).quota.day.remaining).to.equal(59)
  })
})

describe('a ban', () => {
  for (const [plan, limits, strikes] of [
    ['Free', FREE, 60],
    ['Pro, as many as its minute limit', PRO, 300],
    ['a plan with a minute limit of 5', { minute: 5, day: 1000 }, 60],
  ] as const) {
    it(`starts with strike ${strikes} on ${plan}, not counting rejections in the first second`, () => {
      const caller = new Caller({ limits })
      caller.takeMany(limits.minute, NOON_MS)
      expect(count(caller.takeMany(501, NOON_MS, { everyMs: 2 }), 'exhausted')).to.equal(501)
      expect(count(caller.takeMany(strikes - 1, NOON_MS + 1001), 'exhausted')).to.equal(strikes - 1)
      expect(caller.take(NOON_MS + 1001).kind).to.equal('banned')
    })
  }

  it('lasts 60 s, during which 0 requests remain, and requests neither extend it nor use up quota', () => {
    const caller = new Caller()
    expect(caller.ban(NOON_MS)).to.equal(NOON_MS + 1001 + MINUTE_MS)
    const exhausted = { limit: 60, remaining: 0, resetSeconds: NOON_MS / 1000 + 62 }
    expect(caller.take(NOON_MS + 2000)).to.deep.equal({
      kind: 'banned',
      retryAfterSeconds: 60,
      quota: { nowMs: NOON_MS + 2000, minute: exhausted, day: { ...exhausted, limit: 1000 }, binding: exhausted },
    })
    expect(count(caller.takeMany(5900, NOON_MS + 2000, { everyMs: 10 }), 'banned')).to.equal(5900)
    expect(caller.take(NOON_MS + 61_000).kind).to.equal('banned')
    const { quota } = admitted(caller.take(NOON_MS + 61_001))
    expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([59, 1000 - 60 - 1])
  })

  it('does not start after 59 strikes in each of several minutes', () => {
    const caller = new Caller()
    for (let startMs = NOON_MS; startMs < NOON_MS + 4 * MINUTE_MS; startMs += MINUTE_MS) {
      caller.takeMany(61, startMs)
      expect(count(caller.takeMany(59, startMs + 30_000), 'exhausted')).to.equal(59)
    }
  })

  it('lasts 60 s, then twice as long each time, and at most 24 h', () => {
    const caller = new Caller()
    const lengthsMs: number[] = []
    let startMs = NOON_MS
    for (let ban = 0; ban < 14; ban++) {
      const endMs = caller.ban(startMs)
      lengthsMs.push(endMs - startMs - 1001)
      startMs = Math.ceil(endMs / MINUTE_MS) * MINUTE_MS
    }
    const doubled = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].map((minutes) => minutes * MINUTE_MS)
    expect(lengthsMs).to.deep.equal([...doubled, DAY_MS, DAY_MS, DAY_MS])
  })

  it('lasts 60 s again if it starts 24 h after the end of the previous one, but not a millisecond earlier', () => {
    for (const [afterMs, expectedMs] of [
      [DAY_MS - 1, 4 * MINUTE_MS],
      [DAY_MS, MINUTE_MS],
    ] as const) {
      const caller = new Caller()
      caller.ban(NOON_MS + 30_000)
      const startMs = caller.ban(NOON_MS + 2 * MINUTE_MS + 30_000) + afterMs
      expect(caller.ban(startMs - 1001)).to.equal(startMs + expectedMs)
    }
  })
})

describe('a refund', () => {
  for (const [what, takenMs, refundedMs] of [
    ['in the same minute restores the request in both windows', NOON_MS, NOON_MS + 30_000],
    ['in a later minute restores it in the day only', NOON_MS, NOON_MS + MINUTE_MS],
    ['after midnight, but in the same minute, restores it in the minute only', MIDNIGHT_MS - 1000, MIDNIGHT_MS + 1000],
    ['on a later day restores nothing', NOON_MS, NOON_MS + DAY_MS],
  ] as const) {
    it(what, () => {
      const caller = new Caller({ phaseSeconds: 20 })
      const { charge } = admitted(caller.take(takenMs))
      caller.take(refundedMs)
      const { minute, day } = caller.refund(charge, refundedMs)
      expect([minute.remaining, day.remaining]).to.deep.equal([59, 999])
    })
  }

  it('never restores more than was used, even if it is repeated', () => {
    const caller = new Caller()
    const { charge } = admitted(caller.take(NOON_MS))
    caller.refund(charge, NOON_MS)
    expect(caller.refund(charge, NOON_MS)).to.nested.include({ 'minute.remaining': 60, 'day.remaining': 1000 })
  })
})

describe('shadow mode', () => {
  it('admits what would be rejected, reports the same quota, and leaves the same state', () => {
    const enforced = new Caller()
    const shadowed = new Caller({ mode: 'shadow' })
    for (const caller of [enforced, shadowed]) caller.takeMany(61, NOON_MS)
    for (let strike = 0; strike < 61; strike++) {
      const { kind, quota } = enforced.take(NOON_MS + 1001)
      expect(shadowed.take(NOON_MS + 1001)).to.deep.equal({ kind: 'admitted', shadowed: kind, quota })
    }
    expect(shadowed.state).to.deep.equal(enforced.state)
  })
})

describe('a change of limits', () => {
  it('applies from the next request on, and usage stays', () => {
    const caller = new Caller({ limits: PRO })
    caller.takeMany(200, NOON_MS)
    caller.limits = FREE
    expect(caller.take(NOON_MS)).to.nested.include({ kind: 'exhausted', 'quota.minute.remaining': 0, 'quota.day.remaining': 800 })
    caller.limits = PRO
    expect(caller.take(NOON_MS)).to.nested.include({ kind: 'admitted', 'quota.minute.remaining': 99, 'quota.day.remaining': 9799 })
  })
})

describe('the state of a key', () => {
  it('expires at the end of its day, or of its minute if that is later', () => {
    const caller = new Caller({ phaseSeconds: 20 })
    caller.take(NOON_MS)
    expect(expiresAtMs(caller.state, BAN)).to.equal(MIDNIGHT_MS + DAY_MS)
    caller.take(MIDNIGHT_MS + DAY_MS - 1)
    expect(expiresAtMs(caller.state, BAN)).to.be.within(MIDNIGHT_MS + DAY_MS + 20_000, MIDNIGHT_MS + DAY_MS + MINUTE_MS)
  })

  it('expires after a ban when the next ban would last 60 s again', () => {
    const caller = new Caller()
    expect(caller.ban(NOON_MS) + DAY_MS).to.equal(expiresAtMs(caller.state, BAN))
  })
})

interface CallerOptions {
  readonly limits?: Limits
  readonly mode?: QuotaRules['mode']
  readonly phaseSeconds?: number
}

/** A key without earlier requests: on Free, with minutes that start on the minute of the clock, unless overridden. */
class Caller {
  limits: Limits
  readonly #options: CallerOptions
  #state: QuotaState | undefined

  constructor(options: CallerOptions = {}) {
    this.limits = options.limits ?? FREE
    this.#options = options
  }

  take(nowMs: number): Verdict {
    const { verdict, state } = decide(this.#state, this.#rules(), this.#at(nowMs))
    this.#state = state
    return verdict
  }

  takeMany(times: number, fromMs: number, { everyMs = 0 } = {}): Verdict[] {
    return Array.from({ length: times }, (_, index) => this.take(fromMs + index * everyMs))
  }

  /** Causes a ban on Free that starts 1,001 ms after `fromMs`, with exactly as many strikes as that takes. Returns its end. */
  ban(fromMs: number): number {
    this.takeMany(61, fromMs)
    expect(count(this.takeMany(59, fromMs + 1001), 'exhausted')).to.equal(59)
    expect(this.take(fromMs + 1001).kind).to.equal('banned')
    return this.state.bannedUntilMs
  }

  refund(charge: Charge, nowMs: number) {
    const { quota, state } = refund(this.#state, charge, this.#rules(), this.#at(nowMs))
    this.#state = state
    return quota
  }

  get state(): QuotaState {
    return this.#state ?? expect.fail('The key has no state yet')
  }

  #rules(): QuotaRules {
    return { limits: this.limits, ban: BAN, mode: this.#options.mode ?? 'enforce' }
  }

  #at(nowMs: number) {
    return { nowMs, phaseSeconds: this.#options.phaseSeconds ?? 0 }
  }
}

function admitted(verdict: Verdict | undefined): Extract<Verdict, { charge: Charge }> {
  return verdict && 'charge' in verdict ? verdict : expect.fail(`Expected an admission, got ${JSON.stringify(verdict)}`)
}

function rejected(verdict: Verdict): Rejection {
  return verdict.kind === 'admitted' ? expect.fail(`Expected a rejection, got ${JSON.stringify(verdict)}`) : verdict
}

function count(verdicts: readonly Verdict[], kind: Verdict['kind']): number {
  return verdicts.filter((verdict) => verdict.kind === kind).length
}
