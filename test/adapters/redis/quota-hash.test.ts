import { expect } from 'chai'
import fc from 'fast-check'
import { makeRedisClient } from '../../../src/adapters/redis/make-redis-client.js'
import type { RedisClient } from '../../../src/adapters/redis/redis-client.js'
import type { RedisDatabase } from '../../support/engines/redis-engine.js'
import { aRedisDatabase } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import { aQuotaHash } from '../../support/redis-replica.js'
import { aStep, Oracle, run } from './quota-oracle.js'

/** Fixed, so that the steps are the same in each run. */
const SEED = 20_261_121
const STEPS = 100_000
/** Number of commands in flight at a time. Redis executes them in order. */
const BATCH = 500

const REQUIRED_CASES = [
  ...['admitted', 'exhausted minute', 'exhausted day', 'banned', 'shadowed'].flatMap((what) => [what, `${what}, merged`]),
  ...['stale', 'refund', 'reconcile', 'reconcile, merged', 'peek', 'lifted', 'not-banned', 'announce'],
]

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
    const hash = aQuotaHash(client, clock)
    const oracle = new Oracle(clock)
    const counts = new Map<string, number>()

    const steps = fc.sample(aStep, { numRuns: STEPS, seed: SEED })
    for (let from = 0; from < steps.length; from += BATCH) {
      const pending = steps.slice(from, from + BATCH).map((step) => {
        clock.advanceMs(step.passesMs)
        const expected = oracle.step(step)
        counts.set(expected.what, (counts.get(expected.what) ?? 0) + 1)
        return { step, expected, reply: run(hash, step, clock.nowMs(), expected) }
      })
      const replies = await Promise.all(pending.map(({ reply }) => reply))
      for (const [index, { step, expected }] of pending.entries()) {
        expect(replies[index], `step ${from + index}: ${JSON.stringify([step, expected.known])}`).to.deep.equal(expected.reply)
      }
    }
    const missingCases = REQUIRED_CASES.filter((what) => (counts.get(what) ?? 0) < 20)
    expect(missingCases, JSON.stringify([...counts])).to.deep.equal([])
  })
})
