import { expect } from 'chai'
import fc from 'fast-check'
import { decide, expiresAtMs, refund } from '../../src/core/quota.js'
import type { BanRules, Charge, Limits, Quota, QuotaRules, QuotaState, Verdict } from '../../src/core/quota.js'
import type { Instant, WindowName } from '../../src/core/window.js'
import { SlowQuotaModel } from './slow-quota-model.js'

/** Fixed, so that the counts of what the runs came across, which each test checks, are the same every time. */
const SEED = 20_261_123

const WINDOWS: readonly WindowName[] = ['minute', 'day']
const LENGTH_MS = { minute: 60_000, day: 86_400_000 }

type Step =
  | { readonly kind: 'requests'; readonly count: number; readonly everyMs: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'wait until'; readonly moment: WindowName | 'ban end' | 'ban forgotten'; readonly offsetMs: number }
  | { readonly kind: 'obey Retry-After'; readonly earlySeconds: number }
  | { readonly kind: 'refund'; readonly chargesAgo: number }
  | { readonly kind: 'change limits'; readonly limits: Limits }
  | { readonly kind: 'change mode'; readonly mode: QuotaRules['mode'] }
  | { readonly kind: 'step clock back'; readonly ms: number }

interface Traffic {
  readonly startMs: number
  readonly phaseSeconds: number
  readonly rules: QuotaRules
  readonly steps: readonly Step[]
}

interface Event {
  readonly at: Instant
  readonly rules: QuotaRules
  readonly before: QuotaState | undefined
  readonly state: QuotaState
  readonly quota: Quota
}

interface Taken extends Event {
  readonly kind: 'taken'
  readonly verdict: Verdict
}

interface Refunded extends Event {
  readonly kind: 'refunded'
  readonly charge: Charge
}

describe('quota decisions on random traffic', function () {
  this.timeout(20_000)

  it('are those of a slow model of the quota rules', () => {
    const met = tally()
    check(someTraffic(), 800, (traffic) => {
      const model = new SlowQuotaModel()
      let latestMs = traffic.startMs
      play(traffic, (event) => {
        const bansBefore = model.bans.length
        if (event.kind === 'taken') expect(event.verdict).to.deep.equal(model.take(event.rules, event.at))
        else expect(event.quota).to.deep.equal(model.refund(event.charge, event.rules, event.at))

        met(event.kind === 'taken' ? describeVerdict(event) : describeRefund(event))
        if (endTogether(event)) met('exhausted windows that end together')
        for (const { level } of model.bans.slice(bansBefore)) met(describeBan(level, bansBefore, event.rules))
        for (const name of WINDOWS) {
          if (numberOf(name, latestMs, event.at) > numberOf(name, event.at.nowMs, event.at)) met(`clock back over the start of a ${name}`)
        }
        latestMs = Math.max(latestMs, event.at.nowMs)
      })
    })
    met.expectAtLeast(5, ['refund in the minute only', 'exhausted windows that end together'])
    met.expectAtLeast(50, ['first ban', 'longer ban', 'longest ban', 'first ban again', 'ban begun in shadow mode'])
    met.expectAtLeast(50, [
      'admitted',
      'exhausted by the minute',
      'exhausted by the day',
      'exhausted by the minute after a downgrade',
      'banned',
    ])
    met.expectAtLeast(50, ['banned while the minute is exhausted for longer', 'banned while the day is exhausted for longer'])
    met.expectAtLeast(50, ['shadowed exhausted', 'shadowed banned'])
    met.expectAtLeast(50, ['refund in both windows', 'refund in the day only', 'refund too late', 'refund of nothing used'])
    met.expectAtLeast(50, ['clock back over the start of a minute', 'clock back over the start of a day'])
  })

  it('are never over a limit in any window', () => {
    const met = tally()
    check(someTraffic(), 400, (traffic) => {
      const admitted = new Map<string, number>()
      const add = (charge: Charge, units: number) => {
        for (const name of WINDOWS) {
          const key = `${name} ${charge[name]}`
          admitted.set(key, Math.max(0, (admitted.get(key) ?? 0) + units))
        }
      }
      play(traffic, (event) => {
        if (event.kind === 'refunded') add(event.charge, -1)
        if (event.kind === 'refunded' || !('charge' in event.verdict)) return
        const { charge } = event.verdict
        add(charge, 1)
        for (const name of WINDOWS) {
          const count = admitted.get(`${name} ${charge[name]}`) ?? 0
          expect(count).to.be.within(1, event.rules.limits[name])
          if (count === event.rules.limits[name]) met(`${name} used up`)
        }
      })
    })
    met.expectAtLeast(300, ['minute used up', 'day used up'])
  })

  it('a refused request costs nothing in either window', () => {
    const met = tally()
    check(someTraffic({ mode: 'enforce' }), 400, (traffic) => {
      for (const event of played(traffic)) {
        if (event.kind === 'refunded' || event.verdict.kind === 'admitted') continue
        met(`${event.verdict.kind}, ${event.verdict.window ?? 'no window'}`)
        for (const name of WINDOWS) expect(event.state.used[name]).to.equal(usedAtOpening(event, name))
      }
    })
    met.expectAtLeast(100, ['exhausted, minute', 'exhausted, day', 'banned, no window', 'banned, minute', 'banned, day'])
  })

  it('without a ban, all others are answered the same whether or not the refused requests were made', () => {
    const met = tally()
    const neverBanning = { minStrikes: 1_000_000 }
    check(someTraffic({ mode: 'enforce', clock: 'forward', ban: neverBanning }), 400, (traffic) => {
      const events = played(traffic)
      const others = events.filter((event) => event.kind === 'refunded' || event.verdict.kind === 'admitted')
      if (others.length < events.length) met('some were refused')
      expect(answersTo(others)).to.deep.equal(others.map(({ quota }) => quota))
    })
    met.expectAtLeast(100, ['some were refused'])
  })

  it('Retry-After is true: served after exactly that long, refused one second earlier', () => {
    const met = tally()
    check(someTraffic({ mode: 'enforce' }), 400, (traffic) => {
      for (const event of played(traffic)) {
        if (event.kind === 'refunded' || event.verdict.kind === 'admitted') continue
        const { kind, window, retryAfterSeconds } = event.verdict
        expect(retryAfterSeconds).to.satisfy(Number.isSafeInteger).and.to.be.at.least(1)
        const kindAfter = (seconds: number) => decide(event.state, event.rules, later(event.at, seconds * 1000)).verdict.kind
        expect(kindAfter(retryAfterSeconds), `after ${retryAfterSeconds} s`).to.equal('admitted')
        expect(kindAfter(retryAfterSeconds - 1), `one second before ${retryAfterSeconds} s`).not.to.equal('admitted')
        met(`${kind}, ${window ?? 'no window'}`)
        if (retryAfterSeconds === 1) met('one second')
      }
    })
    met.expectAtLeast(100, ['exhausted, minute', 'exhausted, day', 'banned, no window', 'banned, minute', 'banned, day', 'one second'])
  })

  it('the reset never wobbles inside a window', () => {
    const met = tally()
    check(someTraffic(), 400, (traffic) => {
      const resets = new Map<string, number>()
      let latestMs = 0
      play(traffic, (event) => {
        latestMs = Math.max(latestMs, event.at.nowMs)
        if (isBannedAt(event)) return
        for (const name of WINDOWS) {
          const window = `${name} ${numberOf(name, latestMs, event.at)}`
          const { resetSeconds } = event.quota[name]
          expect(resetSeconds * 1000).to.be.within(latestMs + 1, latestMs + LENGTH_MS[name])
          expect(resets.get(window) ?? resetSeconds, window).to.equal(resetSeconds)
          if (resets.has(window)) met(`${name} seen again`)
          if (event.at.nowMs < latestMs) met(`${name} seen by a clock that is behind`)
          resets.set(window, resetSeconds)
        }
      })
    })
    met.expectAtLeast(500, [
      'minute seen again',
      'day seen again',
      'minute seen by a clock that is behind',
      'day seen by a clock that is behind',
    ])
  })

  it('a ban is not extended by traffic', () => {
    const met = tally()
    check(someTraffic({ mode: 'enforce' }), 400, (traffic) => {
      for (const event of played(traffic)) {
        if (event.kind === 'refunded' || !isBannedBefore(event)) continue
        met('refused by a running ban')
        expect(event.verdict.kind).to.equal('banned')
        expect(event.state.bannedUntilMs).to.equal(event.before?.bannedUntilMs)
        expect(event.state.banLevel).to.equal(event.before?.banLevel)
        expect(event.state.strikes).to.be.at.most(event.before?.strikes ?? 0)
      }
    })
    met.expectAtLeast(1000, ['refused by a running ban'])
  })

  it('all others are answered the same whether or not requests were made during a ban', () => {
    const met = tally()
    check(someTraffic({ mode: 'enforce', clock: 'forward' }), 400, (traffic) => {
      const events = played(traffic)
      const others = events.filter((event) => event.kind === 'refunded' || !isBannedBefore(event))
      const lastOfBan = events.findLastIndex((event) => event.kind === 'taken' && isBannedBefore(event))
      if (lastOfBan >= 0 && lastOfBan < events.length - 1) met('traffic during a ban and after it')
      expect(answersTo(others)).to.deep.equal(others.map(({ quota }) => quota))
    })
    met.expectAtLeast(100, ['traffic during a ban and after it'])
  })

  it('a refund never goes below zero or into another window', () => {
    const met = tally()
    check(someTraffic(), 400, (traffic) => {
      for (const event of played(traffic)) {
        if (event.kind === 'taken') continue
        met(describeRefund(event))
        for (const name of WINDOWS) {
          const used = usedAtOpening(event, name)
          const isOfCharge = event.state.window[name] === event.charge[name]
          expect(event.state.used[name]).to.equal(isOfCharge && used > 0 ? used - 1 : used)
        }
        expect(event.state.bannedUntilMs).to.equal(event.before?.bannedUntilMs)
      }
    })
    met.expectAtLeast(20, ['refund in both windows', 'refund in the day only', 'refund too late', 'refund of nothing used'])
  })

  it('Remaining is between 0 and Limit', () => {
    const met = tally()
    check(someTraffic(), 120, (traffic) => {
      play(traffic, ({ quota, rules: { limits } }) => {
        for (const { remaining, limit, resetSeconds } of [quota.minute, quota.day, quota.binding]) {
          expect(remaining).to.satisfy(Number.isSafeInteger).and.to.be.within(0, limit)
          expect(resetSeconds).to.satisfy(Number.isSafeInteger)
          expect(resetSeconds * 1000).to.be.above(quota.nowMs)
        }
        expect([quota.minute.limit, quota.day.limit]).to.deep.equal([limits.minute, limits.day])
        expect([quota.minute, quota.day]).to.deep.include(quota.binding)
        met(quota.binding.remaining === 0 ? 'none left' : 'some left')
      })
    })
    met.expectAtLeast(500, ['none left', 'some left'])
  })

  it('a state that may be forgotten decides like a missing one', () => {
    const met = tally()
    check(fc.tuple(someTraffic({ clock: 'forward' }), someTraffic({ clock: 'forward' })), 500, ([traffic, next]) => {
      const last = played(traffic).at(-1)
      if (!last) return
      const { state, rules } = last
      const startMs = Math.max(last.at.nowMs, expiresAtMs(state, rules.ban))
      const afterwards = { ...next, startMs, rules, phaseSeconds: traffic.phaseSeconds }
      const forgotten = played(afterwards)
      expect(answersTo(forgotten, state)).to.deep.equal(forgotten.map(({ quota }) => quota))
      met(state.banLevel > 0 ? 'after a ban' : 'without a ban')
      if (startMs === state.bannedUntilMs + rules.ban.forgetAfterMs) met('the ban decides')
      if (forgotten.some(({ state: { banLevel } }) => banLevel > 0)) met('banned afterwards')
    })
    met.expectAtLeast(50, ['after a ban', 'without a ban', 'the ban decides', 'banned afterwards'])
  })

  it('the same state, rules and instant give the same verdict, and the state handed in is left as it was', () => {
    check(someTraffic(), 150, (traffic) => {
      for (const event of played(traffic)) {
        const before = structuredClone(event.before)
        const again =
          event.kind === 'taken' ? decide(event.before, event.rules, event.at) : refund(event.before, event.charge, event.rules, event.at)
        expect(again.state).to.deep.equal(event.state)
        expect('verdict' in again ? again.verdict.quota : again.quota).to.deep.equal(event.quota)
        expect(event.before).to.deep.equal(before)
      }
    })
  })
})

function check<T>(arbitrary: fc.Arbitrary<T>, numRuns: number, predicate: (value: T) => void): void {
  fc.assert(fc.property(arbitrary, predicate), { seed: SEED, numRuns })
}

interface TrafficOptions {
  /** Fixed; else either, changing on the way. */
  readonly mode?: QuotaRules['mode']
  readonly clock?: 'forward' | 'jumping'
  readonly ban?: Partial<BanRules>
}

/** Small limits and short bans, and moments next to those at which something changes: problems hide there. */
function someTraffic({ mode, clock = 'jumping', ban = {} }: TrafficOptions = {}): fc.Arbitrary<Traffic> {
  const modes = mode ? fc.constant(mode) : fc.constantFrom('enforce' as const, 'enforce' as const, 'shadow' as const)
  const midnightMs = Date.UTC(2026, 10, 24)
  return fc.record({
    startMs: fc.oneof(
      fc.integer({ min: midnightMs - 150_000, max: midnightMs + 5_000 }),
      fc.integer({ min: midnightMs - LENGTH_MS.day, max: midnightMs }),
    ),
    phaseSeconds: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 59 })),
    rules: fc.record({
      limits: someLimits(),
      ban: someBanRules().map((rules) => ({ ...rules, ...ban })),
      mode: modes,
    }),
    steps: fc.array(someStep({ modes: mode ? undefined : modes, clock }), { minLength: 1, maxLength: 50, size: 'max' }),
  })
}

function someLimits(): fc.Arbitrary<Limits> {
  return fc.record({
    minute: fc.integer({ min: 1, max: 6 }),
    day: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 5, max: 60 })),
  })
}

function someBanRules(): fc.Arbitrary<BanRules> {
  return fc.record({
    graceMs: fc.constantFrom(0, 1, 500, 1000),
    minStrikes: fc.integer({ min: 1, max: 5 }),
    firstMs: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 90_000 }), fc.constantFrom(1000, 60_000)),
    longestMs: fc.oneof(fc.integer({ min: 2_000, max: 200_000 }), fc.constantFrom(60_000, LENGTH_MS.day)),
    forgetAfterMs: fc.oneof(fc.integer({ min: 1, max: 120_000 }), fc.constantFrom(60_000, 3_600_000, LENGTH_MS.day)),
  })
}

interface StepOptions {
  readonly modes: fc.Arbitrary<QuotaRules['mode']> | undefined
  readonly clock: 'forward' | 'jumping'
}

function someStep({ modes, clock }: StepOptions): fc.Arbitrary<Step> {
  const offsetMs = fc.oneof(fc.constantFrom(-1000, -1, 0, 1, 999, 1000), fc.integer({ min: -2000, max: 2000 }))
  const moment = fc.constantFrom(...(['minute', 'minute', 'day', 'ban end', 'ban end', 'ban forgotten'] as const))
  const everyMs = fc.oneof(fc.constantFrom(0, 1, 1000, 1001), fc.integer({ min: 0, max: 1500 }))
  const waitMs = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 1500 }) },
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 90_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 3 * LENGTH_MS.day }) },
  )
  const stepBackMs = fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 59_999 }))
  const chargesAgo = fc.oneof(fc.constant(0), fc.nat({ max: 12 }))
  const some: fc.WeightedArbitrary<Step>[] = [
    { weight: 12, arbitrary: stepOf('requests', { count: fc.integer({ min: 1, max: 12 }), everyMs }) },
    { weight: 4, arbitrary: stepOf('wait', { ms: waitMs }) },
    { weight: 6, arbitrary: stepOf('wait until', { moment, offsetMs }) },
    { weight: 2, arbitrary: stepOf('obey Retry-After', { earlySeconds: fc.constantFrom(0, 1) }) },
    { weight: 4, arbitrary: stepOf('refund', { chargesAgo }) },
    { weight: 2, arbitrary: stepOf('change limits', { limits: someLimits() }) },
  ]
  if (modes) some.push({ weight: 1, arbitrary: stepOf('change mode', { mode: modes }) })
  if (clock === 'jumping') some.push({ weight: 2, arbitrary: stepOf('step clock back', { ms: stepBackMs }) })
  return fc.oneof(...some)
}

function stepOf<Kind extends string, Fields extends object>(kind: Kind, fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> }) {
  return fc.record(fields).map((values) => ({ kind, ...values }))
}

/** Lets `decide` and `refund` answer the traffic of one key, and tells of each answer. */
function play(traffic: Traffic, observe: (event: Taken | Refunded) => void): void {
  const { phaseSeconds } = traffic
  let { rules, startMs: nowMs } = traffic
  let latestMs = nowMs
  let state: QuotaState | undefined
  let retryAfterSeconds = 0
  const charges: Charge[] = []

  const moveTo = (ms: number) => {
    nowMs = ms
    latestMs = Math.max(latestMs, ms)
  }
  const ask = () => {
    const before = state
    const at = { nowMs, phaseSeconds }
    const decision = decide(before, rules, at)
    const { verdict } = decision
    state = decision.state
    if ('charge' in verdict) charges.push(verdict.charge)
    if ('retryAfterSeconds' in verdict) retryAfterSeconds = verdict.retryAfterSeconds
    observe({ kind: 'taken', at, rules, before, state, quota: verdict.quota, verdict })
  }

  for (const step of traffic.steps) {
    switch (step.kind) {
      case 'requests':
        for (let asked = 0; asked < step.count; asked++) {
          if (asked > 0) moveTo(nowMs + step.everyMs)
          ask()
        }
        break
      case 'wait':
        moveTo(nowMs + step.ms)
        break
      case 'wait until': {
        const momentMs = {
          minute: endOf('minute', { nowMs, phaseSeconds }),
          day: endOf('day', { nowMs, phaseSeconds }),
          'ban end': state?.bannedUntilMs ?? 0,
          'ban forgotten': state?.bannedUntilMs ? state.bannedUntilMs + rules.ban.forgetAfterMs : 0,
        }[step.moment]
        moveTo(Math.max(nowMs, momentMs + step.offsetMs))
        break
      }
      case 'obey Retry-After':
        moveTo(nowMs + Math.max(0, retryAfterSeconds - step.earlySeconds) * 1000)
        ask()
        break
      case 'refund': {
        const charge = charges.at(-1 - (step.chargesAgo % Math.max(1, charges.length)))
        if (!charge) break
        const before = state
        const at = { nowMs, phaseSeconds }
        const refunded = refund(before, charge, rules, at)
        state = refunded.state
        observe({ kind: 'refunded', at, rules, before, state, quota: refunded.quota, charge })
        break
      }
      case 'change limits':
        rules = { ...rules, limits: step.limits }
        break
      case 'change mode':
        rules = { ...rules, mode: step.mode }
        break
      case 'step clock back':
        nowMs = Math.max(nowMs - step.ms, latestMs - 59_999)
        break
    }
  }
}

function played(traffic: Traffic): (Taken | Refunded)[] {
  const events: (Taken | Refunded)[] = []
  play(traffic, (event) => events.push(event))
  return events
}

/** The same requests and refunds at the same instants, and no others, on a key that was never seen before or is in the given state. */
function answersTo(events: readonly (Taken | Refunded)[], first?: QuotaState): Quota[] {
  let state = first
  return events.map((event) => {
    if (event.kind === 'refunded') {
      const refunded = refund(state, event.charge, event.rules, event.at)
      state = refunded.state
      return refunded.quota
    }
    const decision = decide(state, event.rules, event.at)
    state = decision.state
    return decision.verdict.quota
  })
}

function later(at: Instant, ms: number): Instant {
  return { ...at, nowMs: at.nowMs + ms }
}

function numberOf(name: WindowName, ms: number, { phaseSeconds }: Instant): number {
  return Math.floor((ms + (name === 'minute' ? phaseSeconds * 1000 : 0)) / LENGTH_MS[name])
}

function endOf(name: WindowName, at: Instant): number {
  return (numberOf(name, at.nowMs, at) + 1) * LENGTH_MS[name] - (name === 'minute' ? at.phaseSeconds * 1000 : 0)
}

/** What was used, before the event, of the window in which the event falls. */
function usedAtOpening({ before, state }: Event, name: WindowName): number {
  return before && before.window[name] === state.window[name] ? before.used[name] : 0
}

function isBannedAt({ at, state }: Event): boolean {
  return at.nowMs < state.bannedUntilMs
}

function isBannedBefore({ at, before }: Event): boolean {
  return before !== undefined && at.nowMs < before.bannedUntilMs
}

function describeVerdict(event: Taken): string {
  const { verdict, rules } = event
  if (verdict.kind === 'admitted') return 'shadowed' in verdict ? `shadowed ${verdict.shadowed}` : 'admitted'
  if (verdict.kind === 'banned') return verdict.window ? `banned while the ${verdict.window} is exhausted for longer` : 'banned'
  const isDowngraded = verdict.window === 'minute' && usedAtOpening(event, 'minute') > rules.limits.minute
  return `exhausted by the ${verdict.window ?? 'nothing'}${isDowngraded ? ' after a downgrade' : ''}`
}

function describeBan(level: number, bansBefore: number, { ban, mode }: QuotaRules): string {
  if (mode === 'shadow') return 'ban begun in shadow mode'
  if (level === 0) return bansBefore === 0 ? 'first ban' : 'first ban again'
  return ban.firstMs * 2 ** level > ban.longestMs ? 'longest ban' : 'longer ban'
}

/** Whether both windows are exhausted, and over at the same instant. */
function endTogether(event: Taken | Refunded): boolean {
  const { minute, day } = event.quota
  return !isBannedAt(event) && minute.remaining === 0 && day.remaining === 0 && minute.resetSeconds === day.resetSeconds
}

function describeRefund(event: Refunded): string {
  const ofCharge = WINDOWS.filter((name) => event.state.window[name] === event.charge[name])
  if (ofCharge.length === 0) return 'refund too late'
  if (ofCharge.some((name) => usedAtOpening(event, name) === 0)) return 'refund of nothing used'
  return ofCharge.length === 2 ? 'refund in both windows' : `refund in the ${ofCharge[0] ?? 'nothing'} only`
}

/** Counts what the runs came across: a property that never met its case has shown nothing. */
function tally(): ((met: string) => void) & { expectAtLeast(times: number, cases: readonly string[]): void } {
  const counts = new Map<string, number>()
  const count = (met: string) => void counts.set(met, (counts.get(met) ?? 0) + 1)
  const expectAtLeast = (times: number, cases: readonly string[]) => {
    for (const each of cases) expect(counts.get(each) ?? 0, `times that the runs met '${each}'`).to.be.at.least(times)
  }
  return Object.assign(count, { expectAtLeast })
}
