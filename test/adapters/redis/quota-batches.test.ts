import { expect } from 'chai'
import { makeRedisClient } from '../../../src/adapters/redis/make-redis-client.js'
import { QuotaBatcher } from '../../../src/adapters/redis/quota-batcher.js'
import type { QuotaReply } from '../../../src/adapters/redis/quota-hash.js'
import { QuotaHash } from '../../../src/adapters/redis/quota-hash.js'
import type { RedisClient } from '../../../src/adapters/redis/redis-client.js'
import { someQuotaRules } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { aQuotaHash, KEYS } from '../../support/redis-replica.js'
import { inParallel } from '../../support/verdicts.js'

const FREE = someQuotaRules()
const VERSION = { version: 1 }

describe('quota decisions that are made in one callback of the event loop', () => {
  let redis: OwnEngine
  let client: RedisClient
  let hash: QuotaHash

  before(async function () {
    redis = await anOwnRedis(this)
    client = makeRedisClient(redis.url)
    await client.connect()
  })

  beforeEach(async () => {
    await client.flushall()
    hash = aQuotaHash(client)
    // The first call of a connection loads the script.
    await hash.peek('key_other', FREE)
    await client.config('RESETSTAT')
  })

  after(async () => {
    client?.disconnect()
    await redis?.stop()
  })

  const countCalls = async () => Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(await client.info('commandstats'))?.[1] ?? 0)
  const take = (keyId: string) => hash.take(keyId, FREE, VERSION)

  it('share one call to Redis, for the same key and for different keys', async () => {
    const replies = await inParallel(60, (index) => take(`key_${index % 20}`))
    expect(replies.map(toMinuteUsed)).to.deep.equal(replies.map((_, index) => Math.floor(index / 20) + 1))
    expect(await countCalls()).to.equal(1)
  })

  it('are made one after the other: of 70 requests with a Free key, the first 60 are admitted', async () => {
    const replies = await inParallel(70, () => take('key_one'))
    expect(replies.map(({ outcome }) => outcome)).to.deep.equal(replies.map((_, index) => (index < 60 ? 'done' : 'rejected')))
    expect(replies.map(toMinuteUsed)).to.deep.equal(replies.map((_, index) => Math.min(index + 1, 60)))
    expect(await countCalls()).to.equal(1)
  })

  it('are made in the order of the calls for a key, even between calls for other keys', async () => {
    const replies = await Promise.all([
      ...[take('key_one'), take('key_two'), take('key_one')],
      ...[hash.announce('key_one', 2), take('key_one'), take('key_two')],
      ...[hash.take('key_one', FREE, { version: 2 }), hash.unban('key_two')],
    ])
    expect(replies.map(({ outcome }) => outcome)).to.deep.equal(['done', 'done', 'done', 'done', 'stale', 'done', 'done', 'rejected'])
    expect(await countCalls()).to.equal(1)
  })

  it('are split into calls of at most 100 decisions, so that Redis is not blocked', async () => {
    const replies = await inParallel(250, () => hash.take('key_one', someQuotaRules({ limits: { minute: 1_000 } }), VERSION))
    expect(replies.map(toMinuteUsed)).to.deep.equal(replies.map((_, index) => index + 1))
    expect(await countCalls()).to.equal(3)
  })

  it('do not affect each other if one of the hashes is corrupt', async () => {
    await client.set(KEYS.quota('key_corrupt'), 'text')
    const replies = await Promise.all(['key_one', 'key_corrupt', 'key_corrupt', 'key_two', 'key_one'].map(take))
    expect(replies.map(({ outcome }) => outcome)).to.deep.equal(['done', 'corrupt', 'corrupt', 'done', 'done'])
  })

  it('have one time limit per call, which includes reading the reply', async () => {
    let calls = 0
    const batcher = new QuotaBatcher(client, KEYS, (command) => {
      calls += 1
      return command()
    })
    const limited = new QuotaHash(batcher)
    await inParallel(250, () => limited.take('key_one', FREE, VERSION))
    expect(calls).to.equal(3)
  })

  for (const reply of ['[[1,nan]]', '[]', '[[7]]', '{}', '']) {
    it(`fail within their call if the reply is ${reply === '' ? 'empty' : reply}`, async () => {
      const failures: unknown[] = []
      const scripted = { defineCommand: () => undefined, petstoreQuota: () => Promise.resolve(reply) } as unknown as RedisClient
      const batcher = new QuotaBatcher(scripted, KEYS, (command) =>
        command().catch((error: unknown) => {
          failures.push(error)
          throw error
        }),
      )
      const settled = await Promise.allSettled([new QuotaHash(batcher).take('key_one', FREE, VERSION)])
      expect(settled[0].status).to.equal('rejected')
      expect(failures).to.have.lengthOf(1)
    })
  }

  it('return numbers up to 2^53 − 1 exactly', async () => {
    await hash.announce('key_one', Number.MAX_SAFE_INTEGER)
    expect(await hash.peek('key_one', FREE)).to.have.nested.property('state.keyVersion', Number.MAX_SAFE_INTEGER)
  })

  it('all fail if Redis rejects the call', async () => {
    await client.config('SET', 'min-replicas-to-write', '1')
    const settled = await Promise.allSettled([take('key_one'), take('key_one'), take('key_two')])
    await client.config('SET', 'min-replicas-to-write', '0')
    expect(settled.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected', 'rejected'])
    expect(toMinuteUsed(await take('key_one'))).to.equal(1)
  })
})

function toMinuteUsed(reply: QuotaReply): number | undefined {
  return 'state' in reply ? reply.state.used.minute : undefined
}
