import { expect } from 'chai'
import fc from 'fast-check'
import { decide, expiresAtMs, refund } from '../../src/core/quota.js'
import type { BanRules, Charge, Limits, Quota, QuotaRules, QuotaState, Verdict } from '../../src/core/quota.js'
import type { Instant, WindowName } from '../../src/core/window.js'
import { getWindowNumber, getWindowResetSeconds } from '../../src/core/window.js'
import { SlowQuotaModel } from './slow-quota-model.js'

const WINDOWS = ['minute', 'day'] as const
const DAY_MS = 86_400_000

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
type TakeEvent = Event & { readonly kind: 'taken'; readonly verdict: Verdict }
type RefundEvent = Event & { readonly kind: 'refunded'; readonly charge: Charge }

describe('quota decisions on random traffic', function () {
  this.timeout(20_000)

  it('match a slow model of the quota rules', () => {
    const covered = new Tally()
    check(someTraffic(), 800, (traffic) => {
      const model = new SlowQuotaModel()
      let latestMs = traffic.startMs
      for (const event of play(traffic)) {
        const bansBefore = model.bans.length
        if (event.kind === 'taken') expect(event.verdict).to.deep.equal(model.take(event.rules, event.at))
        else expect(event.quota).to.deep.equal(model.refund(event.charge, event.rules, event.at))

        covered.add(event.kind === 'taken' ? describeVerdict(event) : describeRefund(event))
        if (endTogether(event)) covered.add('exhausted windows that end together')
        for (const { level } of model.bans.slice(bansBefore)) covered.add(describeBan(level, bansBefore, event.rules))
        for (const name of WINDOWS) {
          if (getWindowNumber(name, { ...event.at, nowMs: latestMs }) > getWindowNumber(name, event.at))
            covered.add(`clock before the ${name}`)
        }
        latestMs = Math.max(latestMs, event.at.nowMs)
      }
    })
    covered.expectAtLeast(5, 'refund in the minute', 'exhausted windows that end together')
    covered.expectAtLeast(50, 'first ban', 'longer ban', 'longest ban', 'first ban again', 'ban in shadow mode')
    covered.expectAtLeast(50, 'admitted', 'exhausted minute', 'exhausted day', 'exhausted minute after a downgrade')
    covered.expectAtLeast(50, 'banned', 'banned and exhausted minute', 'banned and exhausted day', 'shadowed exhausted', 'shadowed banned')
    covered.expectAtLeast(50, 'refund in the minute and day', 'refund in the day', 'refund too late', 'refund of nothing used')
    covered.expectAtLeast(50, 'clock before the minute', 'clock before the day')
  })

  it('never admit more requests in a window than its limit', () => {
    const covered = new Tally()
    check(someTraffic(), 400, (traffic) => {
      const admitted = new Map<string, number>()
      for (const event of play(traffic)) {
        const charge = event.kind === 'refunded' ? event.charge : 'charge' in event.verdict && event.verdict.charge
        if (!charge) continue
        for (const name of WINDOWS) {
          const window = `${name} ${charge[name]}`
          const count = Math.max(0, (admitted.get(window) ?? 0) + (event.kind === 'refunded' ? -1 : 1))
          admitted.set(window, count)
          if (event.kind === 'taken') expect(count).to.be.at.most(event.rules.limits[name])
          if (count === event.rules.limits[name]) covered.add(`${name} used up`)
        }
      }
    })
    covered.expectAtLeast(300, 'minute used up', 'day used up')
  })

  it('charge nothing for a rejected request, and do not let it change a ban', () => {
    const covered = new Tally()
    check(someTraffic({ mode: 'enforce' }), 400, (traffic) => {
      for (const event of play(traffic)) {
        if (!isRejected(event)) continue
        covered.add(describeVerdict(event))
        for (const name of WINDOWS) expect(event.state.used[name]).to.equal(countUsedBefore(event, name))
        if (!isBannedBefore(event)) continue
        expect(event.verdict.kind).to.equal('banned')
        expect(event.state).to.include({ bannedUntilMs: event.before?.bannedUntilMs, banLevel: event.before?.banLevel })
      }
    })
    covered.expectAtLeast(100, 'exhausted minute', 'exhausted day', 'banned', 'banned and exhausted minute', 'banned and exhausted day')
  })

  for (const [what, ban, isOmitted] of [
    ['rejected requests, if none of them leads to a ban', { minStrikes: 1_000_000 }, isRejected],
    ['requests during a ban', {}, (event: TakeEvent | RefundEvent) => event.kind === 'taken' && isBannedBefore(event)],
  ] as const) {
    it(`are the same without ${what}`, () => {
      const covered = new Tally()
      check(someTraffic({ mode: 'enforce', clock: 'forward', ban }), 400, (traffic) => {
        const events = play(traffic)
        const others = events.filter((event) => !isOmitted(event))
        if (events.findLastIndex(isOmitted) < events.length - 1 && others.length < events.length) covered.add('omitted before others')
        expect(replay(others)).to.deep.equal(others.map(({ quota }) => quota))
      })
      covered.expectAtLeast(100, 'omitted before others')
    })
  }

  it('give the exact Retry-After: a request is admitted after that time, and rejected one second earlier', () => {
    const covered = new Tally()
    check(someTraffic({ mode: 'enforce' }), 400, (traffic) => {
      for (const event of play(traffic)) {
        if (!isRejected(event) || !('retryAfterSeconds' in event.verdict)) continue
        const { retryAfterSeconds } = event.verdict
        expect(retryAfterSeconds).to.satisfy(Number.isSafeInteger).and.to.be.at.least(1)
        const kindAfter = (seconds: number) =>
          decide(event.state, event.rules, { ...event.at, nowMs: event.at.nowMs + seconds * 1000 }).verdict.kind
        expect(kindAfter(retryAfterSeconds)).to.equal('admitted')
        expect(kindAfter(retryAfterSeconds - 1)).not.to.equal('admitted')
        covered.add(describeVerdict(event))
        if (retryAfterSeconds === 1) covered.add('one second')
      }
    })
    covered.expectAtLeast(100, 'exhausted minute', 'exhausted day', 'banned', 'banned and exhausted minute', 'banned and exhausted day')
    covered.expectAtLeast(100, 'one second')
  })

  it('are the same with an expired state as without a state', () => {
    const covered = new Tally()
    check(fc.tuple(someTraffic({ clock: 'forward' }), someTraffic({ clock: 'forward' })), 500, ([traffic, next]) => {
      const last = play(traffic).at(-1)
      if (!last) return
      const { state, rules } = last
      const startMs = Math.max(last.at.nowMs, expiresAtMs(state, rules.ban))
      const events = play({ ...next, startMs, rules, phaseSeconds: traffic.phaseSeconds })
      expect(replay(events, state)).to.deep.equal(events.map(({ quota }) => quota))
      covered.add(state.banLevel > 0 ? 'after a ban' : 'without a ban')
      if (startMs === state.bannedUntilMs + rules.ban.forgetAfterMs) covered.add('expiry of a ban')
      if (events.some(({ state: { banLevel } }) => banLevel > 0)) covered.add('banned afterwards')
    })
    covered.expectAtLeast(50, 'after a ban', 'without a ban', 'expiry of a ban', 'banned afterwards')
  })

  it('are pure: they depend on state, rules and instant alone, and do not change the state that is passed in', () => {
    check(someTraffic(), 150, (traffic) => {
      for (const event of play(traffic)) {
        const before = structuredClone(event.before)
        expect(replay([event], event.before)).to.deep.equal([event.quota])
        expect(event.before).to.deep.equal(before)
      }
    })
  })
})

function check<T>(arbitrary: fc.Arbitrary<T>, numRuns: number, predicate: (value: T) => void): void {
  // With a fixed seed the tallies are the same in every run.
  fc.assert(fc.property(arbitrary, predicate), { seed: 20_261_123, numRuns })
}

interface TrafficOptions {
  /** By default the mode varies and changes. */
  readonly mode?: QuotaRules['mode']
  readonly clock?: 'forward' | 'jumping'
  readonly ban?: Partial<BanRules>
}

/** Small limits, short bans, and instants next to those at which something changes. */
function someTraffic({ mode, clock = 'jumping', ban = {} }: TrafficOptions = {}): fc.Arbitrary<Traffic> {
  const midnightMs = Date.UTC(2026, 10, 24)
  const someMode = mode ? fc.constant(mode) : fc.constantFrom('enforce' as const, 'enforce' as const, 'shadow' as const)
  const someLimits = fc.record({
    minute: fc.integer({ min: 1, max: 6 }),
    day: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 5, max: 60 })),
  })
  const someBanRules = fc.record({
    graceMs: fc.constantFrom(0, 1, 500, 1000),
    minStrikes: fc.integer({ min: 1, max: 5 }),
    firstMs: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 90_000 }), fc.constantFrom(1000, 60_000)),
    longestMs: fc.oneof(fc.integer({ min: 2_000, max: 200_000 }), fc.constantFrom(60_000, DAY_MS)),
    forgetAfterMs: fc.oneof(fc.integer({ min: 1, max: 120_000 }), fc.constantFrom(60_000, 3_600_000, DAY_MS)),
  })
  const somePauseMs = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 1500 }) },
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 90_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 3 * DAY_MS }) },
  )
  const someStep = fc.oneof<fc.WeightedArbitrary<Step>[]>(
    step(12, 'requests', {
      count: fc.integer({ min: 1, max: 12 }),
      everyMs: fc.oneof(fc.constantFrom(0, 1, 1000, 1001), fc.integer({ min: 0, max: 1500 })),
    }),
    step(4, 'wait', { ms: somePauseMs }),
    step(6, 'wait until', {
      moment: fc.constantFrom('minute', 'minute', 'day', 'ban end', 'ban end', 'ban forgotten'),
      offsetMs: fc.oneof(fc.constantFrom(-1000, -1, 0, 1, 999, 1000), fc.integer({ min: -2000, max: 2000 })),
    }),
    step(2, 'obey Retry-After', { earlySeconds: fc.constantFrom(0, 1) }),
    step(4, 'refund', { chargesAgo: fc.oneof(fc.constant(0), fc.nat({ max: 12 })) }),
    step(2, 'change limits', { limits: someLimits }),
    step(mode ? 0 : 1, 'change mode', { mode: someMode }),
    step(clock === 'forward' ? 0 : 2, 'step clock back', {
      ms: fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 59_999 })),
    }),
  )
  return fc.record({
    startMs: fc.oneof(
      fc.integer({ min: midnightMs - 150_000, max: midnightMs + 5_000 }),
      fc.integer({ min: midnightMs - DAY_MS, max: midnightMs }),
    ),
    phaseSeconds: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 59 })),
    rules: fc.record({ limits: someLimits, ban: someBanRules.map((rules) => ({ ...rules, ...ban })), mode: someMode }),
    steps: fc.array(someStep, { minLength: 1, maxLength: 50, size: 'max' }),
  })
}

function step<Kind extends Step['kind']>(
  weight: number,
  kind: Kind,
  fields: { [Name in Exclude<keyof Extract<Step, { kind: Kind }>, 'kind'>]: fc.Arbitrary<Extract<Step, { kind: Kind }>[Name]> },
): fc.WeightedArbitrary<Step> {
  return { weight, arbitrary: fc.record({ kind: fc.constant(kind), ...fields }) as unknown as fc.Arbitrary<Step> }
}

/** Passes the traffic of one key to `decide` and `refund`. */
function play(traffic: Traffic): (TakeEvent | RefundEvent)[] {
  const { phaseSeconds } = traffic
  const events: (TakeEvent | RefundEvent)[] = []
  const charges: Charge[] = []
  let { rules, startMs: nowMs } = traffic
  let latestMs = nowMs
  let state: QuotaState | undefined
  let retryAfterSeconds = 0

  const moveTo = (ms: number) => {
    nowMs = ms
    latestMs = Math.max(latestMs, ms)
  }
  const take = () => {
    const before = state
    const at = { nowMs, phaseSeconds }
    const { verdict, state: after } = decide(before, rules, at)
    state = after
    if ('charge' in verdict) charges.push(verdict.charge)
    if ('retryAfterSeconds' in verdict) retryAfterSeconds = verdict.retryAfterSeconds
    events.push({ kind: 'taken', at, rules, before, state, quota: verdict.quota, verdict })
  }
  const endMs = (name: WindowName) => getWindowResetSeconds(name, getWindowNumber(name, { nowMs, phaseSeconds }), { phaseSeconds }) * 1000

  for (const each of traffic.steps) {
    switch (each.kind) {
      case 'requests':
        for (let count = 0; count < each.count; count++) {
          if (count > 0) moveTo(nowMs + each.everyMs)
          take()
        }
        break
      case 'wait':
        moveTo(nowMs + each.ms)
        break
      case 'wait until': {
        const banEndMs = state?.bannedUntilMs ?? 0
        const forgottenMs = banEndMs && banEndMs + rules.ban.forgetAfterMs
        const momentMs = { minute: endMs('minute'), day: endMs('day'), 'ban end': banEndMs, 'ban forgotten': forgottenMs }[each.moment]
        moveTo(Math.max(nowMs, momentMs + each.offsetMs))
        break
      }
      case 'obey Retry-After':
        moveTo(nowMs + Math.max(0, retryAfterSeconds - each.earlySeconds) * 1000)
        take()
        break
      case 'refund': {
        const charge = charges.at(-1 - (each.chargesAgo % Math.max(1, charges.length)))
        if (!charge) break
        const before = state
        const at = { nowMs, phaseSeconds }
        const { quota, state: after } = refund(before, charge, rules, at)
        state = after
        events.push({ kind: 'refunded', at, rules, before, state, quota, charge })
        break
      }
      case 'change limits':
        rules = { ...rules, limits: each.limits }
        break
      case 'change mode':
        rules = { ...rules, mode: each.mode }
        break
      case 'step clock back':
        nowMs = Math.max(nowMs - each.ms, latestMs - 59_999)
        break
    }
  }
  return events
}

/** The quotas that result from these requests and refunds alone, at the same instants, with `first` as the initial state. */
function replay(events: readonly (TakeEvent | RefundEvent)[], first?: QuotaState): Quota[] {
  let state = first
  return events.map((event) => {
    const outcome = event.kind === 'refunded' ? refund(state, event.charge, event.rules, event.at) : decide(state, event.rules, event.at)
    state = outcome.state
    return 'quota' in outcome ? outcome.quota : outcome.verdict.quota
  })
}

/** Returns the usage before the event, in the window that contains the event. */
function countUsedBefore({ before, state }: Event, name: WindowName): number {
  return before && before.window[name] === state.window[name] ? before.used[name] : 0
}

function isRejected(event: TakeEvent | RefundEvent): event is TakeEvent {
  return event.kind === 'taken' && event.verdict.kind !== 'admitted'
}

function isBannedBefore({ at, before }: Event): boolean {
  return before !== undefined && at.nowMs < before.bannedUntilMs
}

function describeVerdict(event: TakeEvent): string {
  const { verdict, rules } = event
  if (verdict.kind === 'admitted') return 'shadowed' in verdict ? `shadowed ${verdict.shadowed}` : 'admitted'
  if (verdict.kind === 'banned') return verdict.window ? `banned and exhausted ${verdict.window}` : 'banned'
  const wasDowngraded = verdict.window === 'minute' && countUsedBefore(event, 'minute') > rules.limits.minute
  return `exhausted ${verdict.window ?? 'nothing'}${wasDowngraded ? ' after a downgrade' : ''}`
}

function describeBan(level: number, bansBefore: number, { ban, mode }: QuotaRules): string {
  if (mode === 'shadow') return 'ban in shadow mode'
  if (level === 0) return bansBefore === 0 ? 'first ban' : 'first ban again'
  return ban.firstMs * 2 ** level > ban.longestMs ? 'longest ban' : 'longer ban'
}

function describeRefund(event: RefundEvent): string {
  const refundable = WINDOWS.filter((name) => event.state.window[name] === event.charge[name])
  if (refundable.length === 0) return 'refund too late'
  if (refundable.some((name) => countUsedBefore(event, name) === 0)) return 'refund of nothing used'
  return `refund in the ${refundable.join(' and ')}`
}

/** Whether both windows are exhausted and end at the same instant. */
function endTogether({ at, state, quota: { minute, day } }: Event): boolean {
  return at.nowMs >= state.bannedUntilMs && minute.remaining === 0 && day.remaining === 0 && minute.resetSeconds === day.resetSeconds
}

/** Counts the cases that occurred, because a property whose case never occurs proves nothing. */
class Tally {
  readonly #counts = new Map<string, number>()

  add(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1)
  }

  expectAtLeast(times: number, ...cases: readonly string[]): void {
    for (const each of cases) expect(this.#counts.get(each) ?? 0, each).to.be.at.least(times)
  }
}
