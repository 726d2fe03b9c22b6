import { expect } from 'chai'
import fc from 'fast-check'
import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import type { Charge, Limits, Quota, QuotaRules, QuotaState, Verdict } from '../../src/core/quota.js'
import type { Instant, WindowName } from '../../src/core/window.js'
import { decide, refund } from '../../src/core/quota.js'
import { getMinutePhaseSeconds, getWindowResetSeconds } from '../../src/core/window.js'
import { MovableClock } from '../support/movable-clock.js'
import { takeOne } from '../support/take-one.js'
import { someBanRules, someQuotaRules } from '../support/builders.js'
import type { OpenAdapter, Outage } from './open-adapter.js'

/** Fixed, so that the steps are the same in each run. */
const SEED = 20_261_123
const STEPS = 3000

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

export function describeQuotaStore(name: string, open: (clock: MovableClock) => Promise<OpenAdapter<QuotaStore>>, outage?: Outage): void {
  describe(`the quota store ${name}`, () => {
    let clock: MovableClock
    let opened: OpenAdapter<QuotaStore>
    let quotas: QuotaStore

    beforeEach(async () => {
      clock = new MovableClock()
      opened = await open(clock)
      quotas = opened.port
    })

    afterEach(() => opened.close())

    function take(count: number, rules: QuotaRules, keyId = 'key_one'): Promise<Verdict[]> {
      return Promise.all(Array.from({ length: count }, () => takeOne(quotas, keyId, rules)))
    }

    it(`decides ${STEPS} random steps as the core does: bursts, refunds, passing time, changing limits and modes`, async () => {
      const oracle = new Oracle(clock)
      const replicas = [quotas, await opened.reopen()] as const
      const callers = ['key_a', 'key_b', 'key_c', 'key_3'].map((keyId) => ({ keyId, rules: RULES, charges: [] as Charge[] }))
      const counts = new Map<string, number>()
      const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)

      for (const [index, { caller: callerIndex, ...step }] of fc.sample(aStep, { numRuns: STEPS, seed: SEED }).entries()) {
        const caller = callers[callerIndex] as (typeof callers)[number]
        const replica = replicas[index % 2] as QuotaStore
        switch (step.kind) {
          case 'take':
            for (let request = 0; request < step.times; request++) {
              const verdict = await takeOne(replica, caller.keyId, caller.rules)
              expect(verdict, `step ${index}`).to.deep.equal(oracle.take(caller.keyId, caller.rules))
              if ('charge' in verdict) caller.charges.push(verdict.charge)
              count(describeVerdict(verdict))
            }
            break
          case 'refund': {
            const charge = caller.charges.splice(-step.chargesAgo, 1)[0]
            if (!charge) break
            const before = oracle.used(caller.keyId)
            const quota = await replica.refund(caller.keyId, charge, caller.rules)
            expect(quota, `step ${index}`).to.deep.equal(oracle.refund(caller.keyId, charge, caller.rules))
            count(before === oracle.used(caller.keyId) ? 'refunded nothing' : 'refunded')
            break
          }
          case 'wait':
            clock.advanceMs(step.ms)
            break
          case 'wait until':
            clock.moveTo(Math.max(clock.nowMs(), oracle.momentMs(caller.keyId, step.moment) + step.offsetMs))
            break
          case 'change rules':
            caller.rules = { ...caller.rules, limits: step.limits, mode: step.mode }
            break
        }
      }
      for (const what of [
        'admitted',
        'exhausted minute',
        'exhausted day',
        'banned',
        'shadowed exhausted',
        'shadowed banned',
        'refunded',
        'refunded nothing',
      ]) {
        expect(counts.get(what) ?? 0, what).to.be.above(50)
      }
    })

    it('decides by its own clock and returns its time', async () => {
      const [first] = await take(1, someQuotaRules())
      expect(first?.quota.nowMs).to.equal(clock.nowMs())
      clock.advanceMs(1234)
      const [second] = await take(1, someQuotaRules())
      expect(second?.quota.nowMs).to.equal(clock.nowMs())
      if (!second || !('charge' in second)) throw new Error('Not admitted')
      expect((await quotas.refund('key_one', second.charge, someQuotaRules())).nowMs).to.equal(clock.nowMs())
    })

    for (const [window, limits] of [
      ['minute', { minute: 60, day: 1000 }],
      ['day', { minute: 1000, day: 60 }],
    ] satisfies [WindowName, Limits][]) {
      it(`admits exactly 60 of 200 concurrent requests on two replicas, at a ${window} limit of 60`, async () => {
        const replicas = [quotas, await opened.reopen()] as const
        const rules = someQuotaRules({ limits })
        const verdicts = await Promise.all(
          Array.from({ length: 200 }, (_, index) => takeOne(replicas[index % 2] as QuotaStore, 'key_one', rules)),
        )
        const admitted = verdicts.filter(({ kind }) => kind === 'admitted')
        const remaining = admitted.map(({ quota }) => quota[window].remaining).toSorted((a, b) => a - b)
        expect(remaining).to.deep.equal(Array.from({ length: 60 }, (_, index) => index))
        for (const verdict of verdicts.filter(({ kind }) => kind !== 'admitted')) expect(verdict).to.include({ kind: 'exhausted', window })
      })
    }

    it('charges a rejected request to neither window', async () => {
      const rules = someQuotaRules()
      await take(200, rules)
      clock.advanceMs(MINUTE_MS)
      const [verdict] = await take(1, rules)
      expect(verdict?.quota.day.remaining).to.equal(1000 - 60 - 1)
    })

    it('keeps the quotas of different keys apart', async () => {
      const rules = someQuotaRules({ limits: { minute: 2, day: 10 } })
      for (const keyId of ['key_a', 'key_A', 'key_ab', 'key_']) {
        expect((await take(3, rules, keyId)).map(({ kind }) => kind)).to.deep.equal(['admitted', 'admitted', 'exhausted'])
      }
    })

    it('applies charges, refunds and bans immediately on another replica', async () => {
      const rules = someQuotaRules({ limits: { minute: 3, day: 10 }, ban: someBanRules({ minStrikes: 3, graceMs: 0 }) })
      const another = await opened.reopen()
      const [first] = await take(2, rules)
      expect((await takeOne(another, 'key_one', rules)).quota.minute.remaining).to.equal(0)
      expect((await takeOne(another, 'key_one', rules)).kind).to.equal('exhausted')
      if (!first || !('charge' in first)) throw new Error('Not admitted')
      await quotas.refund('key_one', first.charge, rules)
      expect((await takeOne(another, 'key_one', rules)).kind).to.equal('admitted')
      clock.advanceMs(1)
      await take(3, rules)
      expect((await takeOne(another, 'key_one', rules)).kind).to.equal('banned')
      expect((await takeOne(await opened.reopen(), 'key_one', rules)).kind).to.equal('banned')
    })

    it('bans exactly once at the last strike of concurrent rejections', async () => {
      const rules = someQuotaRules({ limits: { minute: 1, day: 10 }, ban: someBanRules({ minStrikes: 10 }) })
      await take(2, rules)
      clock.advanceMs(1001)
      const kinds = (await take(30, rules)).map(({ kind }) => kind)
      expect(kinds.filter((kind) => kind === 'exhausted')).to.have.lengthOf(9)
      expect(kinds.filter((kind) => kind === 'banned')).to.have.lengthOf(21)
      clock.advanceMs(60_000)
      expect((await takeOne(quotas, 'key_one', rules)).kind).to.equal('admitted')
    })

    it('applies 60 concurrent refunds, and never more than was charged', async () => {
      const rules = someQuotaRules()
      const charges = (await take(60, rules)).flatMap((verdict) => ('charge' in verdict ? [verdict.charge] : []))
      const quotasAfter = await Promise.all([...charges, ...charges].map((charge) => quotas.refund('key_one', charge, rules)))
      expect(Math.max(...quotasAfter.map(({ minute }) => minute.remaining))).to.equal(60)
      expect(Math.max(...quotasAfter.map(({ day }) => day.remaining))).to.equal(1000)
      const [verdict] = await take(1, rules)
      expect([verdict?.quota.minute.remaining, verdict?.quota.day.remaining]).to.deep.equal([59, 999])
    })

    it('refunds nothing to an unused key, and returns its quota', async () => {
      const rules = someQuotaRules()
      const [verdict] = await take(1, rules, 'key_used')
      if (!verdict || !('charge' in verdict)) throw new Error('Not admitted')
      const quota = await quotas.refund('key_unused', verdict.charge, rules)
      expect([quota.minute.remaining, quota.day.remaining]).to.deep.equal([60, 1000])
    })

    it('remembers a ban beyond its day, until bans are forgotten', async () => {
      const ban = someBanRules({ minStrikes: 1, graceMs: 0, firstMs: 2 * DAY_MS, longestMs: 8 * DAY_MS })
      const rules = someQuotaRules({ limits: { minute: 1, day: 100 }, ban })
      await take(2, rules)
      clock.advanceMs(1)
      expect((await takeOne(quotas, 'key_one', rules)).kind).to.equal('banned')
      clock.advanceMs(2 * DAY_MS - 1)
      expect((await takeOne(quotas, 'key_one', rules)).kind).to.equal('banned')

      clock.advanceMs(DAY_MS - 1)
      await take(2, rules)
      clock.advanceMs(1)
      const [second] = await take(1, rules)
      expect(second).to.include({ kind: 'banned' })
      expect(second?.quota.binding.resetSeconds).to.equal(Math.ceil((clock.nowMs() + 4 * DAY_MS) / 1000))
    })

    if (outage) {
      describe('during an outage', () => {
        afterEach(() => outage.end())

        it('decides from what this replica knows: never unlimited, never with an error, and with a complete quota', async () => {
          const rules = someQuotaRules()
          await take(10, rules)
          await outage.begin()
          const verdicts = await take(200, rules)
          expect(verdicts.filter(({ kind }) => kind === 'admitted').length).to.be.within(1, 60)
          for (const { quota } of verdicts) {
            for (const { limit, remaining, resetSeconds } of [quota.binding, quota.minute, quota.day]) {
              expect(limit).to.be.within(1, 1000)
              expect(remaining).to.be.within(0, limit)
              expect(resetSeconds * 1000).to.be.above(quota.nowMs)
            }
          }
        })

        it('refunds, and earlier usage still counts after the outage', async () => {
          const rules = someQuotaRules()
          await take(10, rules)
          await outage.begin()
          const [verdict] = await take(1, rules)
          if (!verdict || !('charge' in verdict)) throw new Error('Not admitted')
          expect((await quotas.refund('key_one', verdict.charge, rules)).minute.remaining).to.be.within(1, 60)
          await outage.end()
          expect((await takeOne(quotas, 'key_one', rules)).quota.minute.remaining).to.be.at.most(49)
        })
      })
    }
  })
}

const RULES: QuotaRules = {
  limits: { minute: 5, day: 30 },
  ban: { graceMs: 1000, minStrikes: 4, firstMs: 5000, longestMs: 3_600_000, forgetAfterMs: 7_200_000 },
  mode: 'enforce',
}

type Moment = WindowName | 'ban end' | 'ban forgotten'

const anyCaller = fc.nat({ max: 3 })
const aTake = fc.record({ caller: anyCaller, kind: fc.constant('take' as const), times: fc.integer({ min: 1, max: 12 }) })
const aStep = fc.oneof(
  { weight: 8, arbitrary: aTake },
  {
    weight: 2,
    arbitrary: fc.record({ caller: anyCaller, kind: fc.constant('refund' as const), chargesAgo: fc.integer({ min: 1, max: 8 }) }),
  },
  { weight: 5, arbitrary: fc.record({ caller: anyCaller, kind: fc.constant('wait' as const), ms: fc.nat({ max: 2500 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      caller: anyCaller,
      kind: fc.constant('wait' as const),
      ms: fc.constantFrom(MINUTE_MS, DAY_MS / 24, DAY_MS, 3 * DAY_MS),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      caller: anyCaller,
      kind: fc.constant('wait until' as const),
      moment: fc.constantFrom<Moment>('minute', 'minute', 'minute', 'day', 'ban end', 'ban forgotten'),
      offsetMs: fc.integer({ min: -1, max: 1 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      caller: anyCaller,
      kind: fc.constant('change rules' as const),
      limits: fc.record({ minute: fc.integer({ min: 1, max: 10 }), day: fc.integer({ min: 1, max: 60 }) }),
      mode: fc.constantFrom('enforce' as const, 'enforce' as const, 'shadow' as const),
    }),
  },
)

/** Applies the rules of the core to states that never expire. */
class Oracle {
  readonly #states = new Map<string, QuotaState>()

  constructor(private readonly clock: MovableClock) {}

  take(keyId: string, rules: QuotaRules): Verdict {
    const { verdict, state } = decide(this.#states.get(keyId), rules, this.#at(keyId))
    this.#states.set(keyId, state)
    return verdict
  }

  refund(keyId: string, charge: Charge, rules: QuotaRules): Quota {
    const { quota, state } = refund(this.#states.get(keyId), charge, rules, this.#at(keyId))
    this.#states.set(keyId, state)
    return quota
  }

  /** The total usage in both windows. */
  used(keyId: string): number {
    const used = this.#states.get(keyId)?.used
    return (used?.minute ?? 0) + (used?.day ?? 0)
  }

  momentMs(keyId: string, moment: Moment): number {
    const state = this.#states.get(keyId)
    if (!state) return 0
    if (moment === 'ban end') return state.bannedUntilMs
    if (moment === 'ban forgotten') return state.bannedUntilMs + RULES.ban.forgetAfterMs
    return getWindowResetSeconds(moment, state.window[moment], this.#at(keyId)) * 1000
  }

  #at(keyId: string): Instant {
    return { nowMs: this.clock.nowMs(), phaseSeconds: getMinutePhaseSeconds(keyId) }
  }
}

function describeVerdict(verdict: Verdict): string {
  if (verdict.kind === 'admitted') return 'shadowed' in verdict ? `shadowed ${verdict.shadowed}` : 'admitted'
  return verdict.kind === 'exhausted' ? `exhausted ${verdict.window}` : 'banned'
}
