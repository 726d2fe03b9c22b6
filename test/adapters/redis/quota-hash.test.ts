import { expect } from 'chai'
import fc from 'fast-check'
import { QuotaHash } from '../../../src/adapters/redis/quota-hash.js'
import type { QuotaReply } from '../../../src/adapters/redis/quota-hash.js'
import type { RedisClient } from '../../../src/adapters/redis/redis-client.js'
import { makeRedisClient } from '../../../src/adapters/redis/redis-client.js'
import type { KeyVersion, QuotaRules, QuotaState, UsageDelta, Verdict } from '../../../src/core/quota.js'
import { rollForward, decide, isBanned, isOutdated, refund, reconcile, unban } from '../../../src/core/quota.js'
import { minutePhaseSeconds, windowNumber } from '../../../src/core/window.js'
import { someBanRules } from '../../support/builders.js'
import type { RedisDatabase } from '../../support/engines/redis-engine.js'
import { aRedisDatabase } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'

/** Fixed, so that what the steps come across is the same every time. */
const SEED = 20_261_121
const STEPS = 100_000
/** So many commands are on their way at a time: Redis executes them in order all the same. */
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

  it(`says on ${STEPS} random steps what the core says, and leaves the state that the core leaves`, async function () {
    this.timeout(120_000)
    const clock = new MovableClock()
    const hash = new QuotaHash(client, clock)
    const oracle = new Oracle(clock)
    const met = new Map<string, number>()

    const steps = fc.sample(aStep, { numRuns: STEPS, seed: SEED })
    for (let from = 0; from < steps.length; from += BATCH) {
      const pending = steps.slice(from, from + BATCH).map((step) => {
        clock.advanceMs(step.passesMs)
        const expected = oracle.step(step)
        met.set(expected.what, (met.get(expected.what) ?? 0) + 1)
        return { expected, reply: ask(hash, step, clock.nowMs()) }
      })
      for (const [index, { expected, reply }] of pending.entries()) {
        const { what, ...answer } = expected
        expect(await reply, `step ${from + index}: ${what}`).to.deep.equal(answer)
      }
    }
    const unmet = MUST_MEET.filter((what) => (met.get(what) ?? 0) < 20)
    expect(unmet, JSON.stringify([...met])).to.deep.equal([])
  })
})

const MUST_MEET = [
  'admitted',
  'exhausted minute',
  'exhausted day',
  'banned',
  'shadowed',
  'outdated',
  'refund',
  'usage',
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
  readonly reported: {
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
  reported: fc.oneof(
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

interface Expected extends QuotaReply {
  readonly what: string
}

function ask(hash: QuotaHash, step: Step, nowMs: number): Promise<QuotaReply> {
  const { kind, keyId, rules } = step
  switch (kind) {
    case 'take':
      return hash.take(keyId, rules, toKeyVersion(step), toKeyReport(step, nowMs))
    case 'reconcile':
      return hash.reconcile(keyId, rules, toKeyReport(step, nowMs))
    case 'refund':
      return hash.refund(keyId, rules, toKeyReport(step, nowMs).window)
    case 'peek':
      return hash.peek(keyId, rules)
    case 'unban':
      return hash.unban(keyId)
    case 'announce':
      return hash.announce(keyId, toKeyVersion(step).version)
  }
}

function toKeyVersion({ version, justRead }: Step): KeyVersion {
  return { version: 10 + version, justRead }
}

function toKeyReport({ keyId, reported }: Step, nowMs: number): UsageDelta {
  const at = { nowMs, phaseSeconds: minutePhaseSeconds(keyId) }
  return {
    window: { minute: windowNumber('minute', at) - reported.minutesAgo, day: windowNumber('day', at) - reported.daysAgo },
    strikes: reported.strikes,
    used: { minute: reported.minute, day: reported.day },
  }
}

/**
 * The core around a map. A step that the core has no function for is told as one that it has: what is settled is what a decision with
 * the report would find, less that decision.
 */
class Oracle {
  readonly #states = new Map<string, QuotaState>()

  constructor(private readonly clock: MovableClock) {}

  step(step: Step): Expected {
    const { keyId, rules } = step
    const at = { nowMs: this.clock.nowMs(), phaseSeconds: minutePhaseSeconds(keyId) }
    const stored = this.#states.get(keyId)
    const keyVersion = toKeyVersion(step)
    const report = toKeyReport(step, at.nowMs)
    const keep = (what: string, became: QuotaReply['became'], state: QuotaState): Expected => {
      this.#states.set(keyId, state)
      return { what, became, at, state }
    }
    switch (step.kind) {
      case 'take': {
        if (isOutdated(stored, keyVersion)) return { what: 'outdated', became: 'outdated', at, state: rollForward(stored, rules.ban, at) }
        const { verdict, state } = decide(stored, rules, at, report)
        return keep(nameOf(verdict), 'charge' in verdict ? 'charged' : 'refused', { ...state, version: keyVersion.version })
      }
      case 'reconcile':
        return keep('reconcile', 'charged', reconcile(stored, rules, at, report))
      case 'refund':
        return keep('refund', 'charged', refund(stored, report.window, rules, at).state)
      case 'peek':
        return { what: 'usage', became: 'charged', at, state: rollForward(stored, rules.ban, at) }
      case 'unban': {
        const before = rollForward(stored, NO_BAN_RULES, at)
        if (!stored) return { what: 'not-banned', became: 'refused', at, state: before }
        const lifted = isBanned(before, at)
        return keep(lifted ? 'lifted' : 'not-banned', lifted ? 'charged' : 'refused', unban(before))
      }
      case 'announce': {
        const before = rollForward(stored, NO_BAN_RULES, at)
        const version = Math.max(before.version, keyVersion.version)
        this.#states.set(keyId, { ...(stored ?? NOTHING), version })
        return { what: 'announce', became: 'charged', at, state: { ...before, version } }
      }
    }
  }
}

/** What the script is given where no rules matter. */
const NO_BAN_RULES = someBanRules({ forgetAfterMs: 0 })
const NOTHING: QuotaState = {
  window: { minute: 0, day: 0 },
  used: { minute: 0, day: 0 },
  strikes: 0,
  bannedUntilMs: 0,
  banLevel: 0,
  version: 0,
}

function nameOf(verdict: Verdict): string {
  if (verdict.kind === 'exhausted') return `exhausted ${verdict.window}`
  return 'shadowed' in verdict ? 'shadowed' : verdict.kind
}
