import { expect } from 'chai'
import fc from 'fast-check'
import type { QuotaRules, Rejection } from '../../../src/core/quota.js'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import type { RedisDatabase } from '../../support/engines/redis-engine.js'
import { aRedisDatabase } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica, KEYS, RedisObserver } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { requireCharge } from '../../support/verdicts.js'

/** Fixed, so that the traffic is the same in each run. */
const SEED = 20_261_129
const CHECKS = 4_000
/** Every fourth rejection is checked. The others cause strikes and bans. */
const CHECKED = 4

describe('Retry-After on a real Redis', function () {
  this.timeout(120_000)
  let database: RedisDatabase
  let observer: RedisObserver
  let clock: MovableClock
  let replica: RedisReplica

  before(async function () {
    database = await aRedisDatabase(this)
  })

  beforeEach(async () => {
    await database.flush()
    clock = new MovableClock()
    observer = new RedisObserver(database.url)
    replica = await aRedisReplica(database.url, { clock, hasNoTimeout: true, cachedMs: 0 })
  })

  afterEach(async () => {
    await replica.close()
    observer.close()
  })

  after(() => database?.release())

  /** Returns the outcome for a client that waits this long while nothing else uses the key. Then restores the hash. */
  async function getOutcomeAfter(ms: number, keyId: string, rules: QuotaRules): Promise<string> {
    const [nowMs, fields] = [clock.nowMs(), await observer.hash(keyId)]
    clock.advanceMs(ms)
    const { outcome } = await replica.connection.quotaHash.take(keyId, rules, { version: 1 })
    clock.moveTo(nowMs)
    await observer.store(keyId, fields)
    return outcome
  }

  it(`is exact in ${CHECKS} rejections of random traffic: a request after that time is admitted, and one a second earlier is not`, async () => {
    const counts = new Map<string, number>()
    const count = (label: string) => counts.set(label, (counts.get(label) ?? 0) + 1)
    let [rejections, checks] = [0, 0]
    for (const step of fc.sample(aStep, { numRuns: 60_000, seed: SEED })) {
      if (checks === CHECKS) break
      clock.advanceMs(step.passesMs)
      const verdict = await takeOne(replica.quotas, step.keyId, step.rules)
      if (verdict.kind === 'admitted') {
        if (step.isRefunded) await replica.quotas.refund(step.keyId, requireCharge(verdict), step.rules)
        continue
      }
      rejections += 1
      if (rejections % CHECKED !== 0 && verdict.kind === 'exhausted') continue

      const { retryAfterSeconds, quota, kind, window }: Rejection = verdict
      const label = `${kind} for ${retryAfterSeconds} s at ${quota.nowMs}`
      expect(retryAfterSeconds, label).to.satisfy(Number.isSafeInteger).and.to.be.at.least(1)
      expect(await getOutcomeAfter(retryAfterSeconds * 1000 - 1000, step.keyId, step.rules), `a second early: ${label}`).to.be.oneOf([
        'rejected',
        'banned',
      ])
      expect(await getOutcomeAfter(retryAfterSeconds * 1000, step.keyId, step.rules), `in time: ${label}`).to.equal('done')
      expect(quota.binding.remaining, label).to.equal(0)
      expect(quota.binding.resetSeconds - quota.nowMs / 1000, label).to.be.within(retryAfterSeconds - 1, retryAfterSeconds + 1)
      checks += 1
      count(`${kind}, ${window ?? 'no window'}`)
      if (retryAfterSeconds === 1) count('one second')
    }
    console.error(`      ${checks} checks of ${rejections} rejections: ${JSON.stringify([...counts])}`)
    expect(checks).to.equal(CHECKS)
    for (const label of ['exhausted, minute', 'exhausted, day', 'banned, no window', 'banned, minute', 'banned, day'])
      expect(counts.get(label) ?? 0, label).to.be.above(50)
    expect(await observer.client.exists(KEYS.quota('key_a'))).to.equal(1)
  })

  it('is in whole seconds and at least one second, up to the last millisecond', async () => {
    const rules = someQuotaRules({ limits: { minute: 1 } })
    await takeOne(replica.quotas, 'key_a', rules)
    const first = await takeOne(replica.quotas, 'key_a', rules)
    const endMs = first.quota.minute.resetSeconds * 1000
    for (const [leftMs, seconds] of [
      [30_000, 30],
      [29_999, 30],
      [1_001, 2],
      [1_000, 1],
      [999, 1],
      [1, 1],
    ] as const) {
      clock.moveTo(endMs - leftMs)
      expect(await takeOne(replica.quotas, 'key_a', rules)).to.include({ retryAfterSeconds: seconds })
    }
    clock.moveTo(endMs)
    expect((await takeOne(replica.quotas, 'key_a', rules)).kind).to.equal('admitted')
  })
})

/** The rules of a key stay the same: if they change, an earlier Retry-After no longer applies. */
const RULES: Readonly<Record<string, QuotaRules>> = {
  key_a: someQuotaRules({
    limits: { minute: 5, day: 40 },
    ban: someBanRules({ graceMs: 0, minStrikes: 8, firstMs: 2_345, longestMs: 90_000 }),
  }),
  key_b: someQuotaRules({ limits: { minute: 3, day: 400 }, ban: someBanRules({ graceMs: 500, minStrikes: 6, firstMs: 61_001 }) }),
  key_c: someQuotaRules({
    limits: { minute: 20, day: 25 },
    ban: someBanRules({ minStrikes: 20, firstMs: 10_000, forgetAfterMs: 100_000 }),
  }),
}

const aStep = fc
  .record({
    keyId: fc.constantFrom(...Object.keys(RULES)),
    passesMs: fc.oneof(
      { weight: 80, arbitrary: fc.integer({ min: 0, max: 300 }) },
      { weight: 10, arbitrary: fc.integer({ min: 0, max: 9_000 }) },
      { weight: 4, arbitrary: fc.integer({ min: 0, max: 70_000 }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 50_000_000 }) },
    ),
    isRefunded: fc.integer({ min: 0, max: 9 }).map((digit) => digit === 0),
  })
  .map((step) => ({ ...step, rules: RULES[step.keyId] ?? someQuotaRules() }))
