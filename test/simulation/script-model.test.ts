import { expect } from 'chai'
import type { RedisClient } from '../../src/adapters/redis/redis-client.js'
import { makeRedisClient } from '../../src/adapters/redis/make-redis-client.js'
import type { QuotaState, UsageDelta } from '../../src/core/quota.js'
import { someBanRules, someQuotaRules } from '../support/builders.js'
import type { RedisDatabase } from '../support/engines/redis-engine.js'
import { aRedisDatabase } from '../support/engines/redis-engine.js'
import { MovableClock } from '../support/movable-clock.js'
import { aQuotaHash } from '../support/redis-replica.js'
import { Random } from '../support/simulation/random.js'
import { ScriptModel } from '../support/simulation/script-model.js'

const KEY = 'key_one'
const OPERATIONS = 3_000
const RULES = someQuotaRules({
  limits: { minute: 5, day: 40 },
  ban: someBanRules({ graceMs: 300, minStrikes: 5, firstMs: 3_000, longestMs: 10_000, forgetAfterMs: 20_000 }),
})

describe('The model of the quota script', () => {
  const clock = new MovableClock()
  let database: RedisDatabase | undefined
  let client: RedisClient

  before(async function () {
    database = await aRedisDatabase(this)
    client = makeRedisClient(database.url)
    await client.connect()
  })

  after(async () => {
    client?.disconnect()
    await database?.release()
  })

  it('gives the same replies as the script', async () => {
    const random = new Random(1)
    const model = new ScriptModel(() => clock.nowMs())
    const hashes = [aQuotaHash(client, clock), aQuotaHash(asClient(model), clock)]
    const seen = new Set<string>()
    let last: QuotaState | undefined
    const older: QuotaState[] = []
    for (let count = 0; count < OPERATIONS; count++) {
      const known = older.length > 0 && random.isLucky(0.1) ? [random.pick(older)] : undefined
      const delta = last && random.isLucky(0.1) ? aDelta(random, last) : undefined
      const epoch = random.isLucky(0.05) ? 'an old epoch' : undefined
      const version = random.integer(1, 1 + Math.floor(count / 1000))
      const kind = random.pickWeighted({ take: 80, reconcile: 10, peek: 5, unban: 2, announce: 1 })
      const replies = await Promise.all(
        hashes.map((hash) => {
          if (kind === 'take') return hash.take(KEY, RULES, { version }, { epoch, known, delta })
          if (kind === 'reconcile') return hash.reconcile(KEY, RULES, { epoch, known, delta })
          if (kind === 'peek') return hash.peek(KEY, RULES)
          return kind === 'unban' ? hash.unban(KEY) : hash.announce(KEY, version)
        }),
      )
      const [reply] = replies
      expect(replies[1], `operation ${count}: ${kind}`).to.deep.equal(reply)
      seen.add(`${kind}: ${reply?.outcome}`)
      if (reply && 'state' in reply) last = reply.state
      if (last && random.isLucky(0.2)) older.push(last)
      clock.advanceMs(random.pick([0, 0, 10, 400, 2_000, -1_000, 61_000]))
    }
    expect([...seen]).to.include.members([
      'take: done',
      'take: rejected',
      'take: banned',
      'take: stale',
      'take: epochChanged',
      'reconcile: done',
      'unban: done',
    ])
  })
})

function aDelta(random: Random, { window }: QuotaState): UsageDelta {
  const used = { minute: random.integer(-1, 2), day: random.integer(-1, 2) }
  return { window: { ...window, minute: window.minute - random.integer(0, 1) }, strikes: random.integer(0, 2), used }
}

function asClient(model: ScriptModel): RedisClient {
  const client = {
    defineCommand: () => undefined,
    petstoreQuota: (...args: Parameters<ScriptModel['quota']>) => Promise.resolve(model.quota(...args)),
  }
  return client as unknown as RedisClient
}
