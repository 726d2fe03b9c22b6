import { expect } from 'chai'
import fc from 'fast-check'
import type { TakeReply } from '../../../src/adapters/redis/quota-hash.js'
import { QuotaHash } from '../../../src/adapters/redis/quota-hash.js'
import type { RedisClient } from '../../../src/adapters/redis/redis-client.js'
import { makeRedisClient } from '../../../src/adapters/redis/make-redis-client.js'
import type { KeyVersion, QuotaRules, QuotaState, UsageDelta, Verdict } from '../../../src/core/quota.js'
import { decide, isBanned, isStale, reconcile, rollForward, toRefundDelta, unban } from '../../../src/core/quota.js'
import { getMinutePhaseSeconds, getWindowNumber } from '../../../src/core/window.js'
import { someBanRules } from '../../support/builders.js'
import type { RedisDatabase } from '../../support/engines/redis-engine.js'
import { aRedisDatabase } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'

/** Fixed, so that the steps are the same in each run. */
const SEED = 20_261_121
const STEPS = 100_000
/** Number of commands in flight at a time. Redis executes them in order. */
const BATCH = 500

const KEY_IDS = ['key_a', 'key_b', 'key_c']

describe('the quota script', () => {
  let database: RedisDatabase
  let client: RedisClient

  before(async function () {
    database = await aRedisDatabase(this)
    client = makeRedisClient(database.url)
    await client.connect()
  })

  beforeEach(() => database.flush())

  after(async () => {
    client?.disconnect()
    await database?.release()
  })

  it(`decides ${STEPS} random steps as the core does, and leaves the same state`, async function () {
    this.timeout(120_000)
    const clock = new MovableClock()
    const hash = new QuotaHash(client, clock)
    const oracle = new Oracle(clock)
    const counts = new Map<string, number>()

    const steps = fc.sample(aStep, { numRuns: STEPS, seed: SEED })
    for (let from = 0; from < steps.length; from += BATCH) {
      const pending = steps.slice(from, from + BATCH).map((step) => {
        clock.advanceMs(step.passesMs)
        const expected = oracle.step(step)
        counts.set(expected.what, (counts.get(expected.what) ?? 0) + 1)
        return { expected, reply: run(hash, step, clock.nowMs()) }
      })
      for (const [index, { expected, reply }] of pending.entries()) {
        expect(await reply, `step ${from + index}: ${expected.what}`).to.deep.equal(expected.reply)
      }
    }
    const missingCases = REQUIRED_CASES.filter((what) => (counts.get(what) ?? 0) < 20)
    expect(missingCases, JSON.stringify([...counts])).to.deep.equal([])
  })
})

const REQUIRED_CASES = [
  'admitted',
  'exhausted minute',
  'exhausted day',
  'banned',
  'shadowed',
  'stale',
  'refund',
  'peek',
  'lifted',
  'not-banned',
  'announce',
]

interface Step {
  readonly kind: 'take' | 'reconcile' | 'refund' | 'peek' | 'unban' | 'announce'
  readonly keyId: string
  readonly passesMs: number
  readonly rules: QuotaRules
  readonly version: number
  readonly justRead: boolean
  readonly delta: {
    readonly strikes: number
    readonly minute: number
    readonly day: number
    readonly minutesAgo: number
    readonly daysAgo: number
  }
}

const aStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.oneof(
    { weight: 30, arbitrary: fc.constant('take' as const) },
    { weight: 3, arbitrary: fc.constantFrom('reconcile' as const, 'refund' as const, 'peek' as const) },
    { weight: 1, arbitrary: fc.constantFrom('unban' as const, 'announce' as const) },
  ),
  keyId: fc.constantFrom(...KEY_IDS),
  passesMs: fc.oneof(
    { weight: 60, arbitrary: fc.integer({ min: 0, max: 200 }) },
    { weight: 10, arbitrary: fc.integer({ min: 0, max: 5_000 }) },
    { weight: 2, arbitrary: fc.integer({ min: 50_000, max: 130_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: -70_000, max: 0 }) },
    { weight: 0.2 * 5, arbitrary: fc.constantFrom(3_600_000, 86_400_000, 90_000_000) },
  ),
  rules: fc.record({
    limits: fc.record({ minute: fc.constantFrom(3, 5, 20), day: fc.constantFrom(15, 60, 2 ** 40) }),
    mode: fc.constantFrom('enforce' as const, 'enforce' as const, 'shadow' as const),
    ban: fc.constantFrom(
      someBanRules({ minStrikes: 8 }),
      someBanRules({ minStrikes: 4, graceMs: 0, longestMs: 200_000, forgetAfterMs: 300_000 }),
      someBanRules(),
    ),
  }),
  version: fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: -2, max: 2 }) }),
  justRead: fc.boolean(),
  delta: fc.oneof(
    { weight: 10, arbitrary: fc.constant({ strikes: 0, minute: 0, day: 0, minutesAgo: 1, daysAgo: 1 }) },
    {
      weight: 1,
      arbitrary: fc.record({
        strikes: fc.integer({ min: 0, max: 10 }),
        minute: fc.integer({ min: -4, max: 4 }),
        day: fc.integer({ min: -4, max: 4 }),
        minutesAgo: fc.constantFrom(0, 0, 1),
        daysAgo: fc.constantFrom(0, 0, 1),
      }),
    },
  ),
})

interface Expected {
  readonly what: string
  readonly reply: unknown
}

function run(hash: QuotaHash, step: Step, nowMs: number): Promise<unknown> {
  const { kind, keyId, rules } = step
  switch (kind) {
    case 'take':
      return hash.take(keyId, rules, toKeyVersion(step), toDelta(step, nowMs))
    case 'reconcile':
      return hash.reconcile(keyId, rules, toDelta(step, nowMs))
    case 'refund':
      return hash.reconcile(keyId, rules, toRefundDelta(toDelta(step, nowMs).window))
    case 'peek':
      return hash.peek(keyId)
    case 'unban':
      return hash.unban(keyId)
    case 'announce':
      return hash.announce(keyId, toKeyVersion(step).version)
  }
}

function toKeyVersion({ version, justRead }: Step): KeyVersion {
  return { version: 10 + version, justRead }
}

function toDelta({ keyId, delta }: Step, nowMs: number): UsageDelta {
  const at = { nowMs, phaseSeconds: getMinutePhaseSeconds(keyId) }
  return {
    window: { minute: getWindowNumber('minute', at) - delta.minutesAgo, day: getWindowNumber('day', at) - delta.daysAgo },
    strikes: delta.strikes,
    used: { minute: delta.minute, day: delta.day },
  }
}

/** Applies the rules of the core to states in a map. */
class Oracle {
  readonly #states = new Map<string, QuotaState>()

  constructor(private readonly clock: MovableClock) {}

  step(step: Step): Expected {
    const { keyId, rules, kind } = step
    const at = { nowMs: this.clock.nowMs(), phaseSeconds: getMinutePhaseSeconds(keyId) }
    const stored = this.#states.get(keyId)
    const keyVersion = toKeyVersion(step)
    const delta = toDelta(step, at.nowMs)
    const keep = <Reply>(what: string, state: QuotaState, reply: Reply): Expected => {
      this.#states.set(keyId, state)
      return { what, reply }
    }
    const take = (outcome: TakeReply['outcome'], state: QuotaState): TakeReply => ({ outcome, at, state })
    switch (kind) {
      case 'take': {
        if (isStale(keyVersion, stored)) return { what: 'stale', reply: take('stale', rollForward(stored, rules.ban, at)) }
        const { verdict, state } = decide(stored, rules, at, delta)
        const after = { ...state, keyVersion: keyVersion.version }
        return keep(describeVerdict(verdict), after, take('charge' in verdict ? 'charged' : 'rejected', after))
      }
      case 'reconcile':
      case 'refund': {
        const state = reconcile(stored, rules, at, kind === 'refund' ? toRefundDelta(delta.window) : delta)
        return keep(kind, state, { at, state })
      }
      case 'peek':
        return { what: 'peek', reply: { at, state: stored ?? NO_STATE } }
      case 'unban': {
        if (!stored) return { what: 'not-banned', reply: 'not-banned' }
        const before = rollForward(stored, someBanRules({ forgetAfterMs: 0 }), at)
        const outcome = isBanned(before, at) ? 'lifted' : 'not-banned'
        return keep(outcome, unban(before), outcome)
      }
      case 'announce': {
        const state = stored ?? NO_STATE
        return keep('announce', { ...state, keyVersion: Math.max(state.keyVersion, keyVersion.version) }, undefined)
      }
    }
  }
}

const NO_STATE: QuotaState = {
  window: { minute: 0, day: 0 },
  used: { minute: 0, day: 0 },
  strikes: 0,
  bannedUntilMs: 0,
  banLevel: 0,
  keyVersion: 0,
}

function describeVerdict(verdict: Verdict): string {
  if (verdict.kind === 'exhausted') return `exhausted ${verdict.window}`
  return 'shadowed' in verdict ? 'shadowed' : verdict.kind
}
