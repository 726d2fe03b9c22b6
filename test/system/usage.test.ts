import { expect } from 'chai'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { anOwnRedis } from '../support/engines/redis-engine.js'
import { withRedis } from '../support/engines/redis-client.js'
import { MovableClock } from '../support/movable-clock.js'
import { PREFIX } from '../support/redis-replica.js'
import { readQuotaHeaders } from '../support/responses.js'
import { until } from '../support/until.js'

describe('GET /v1/usage with MongoDB and Redis', function () {
  this.timeout(30_000)
  let mongo: MongoDatabase
  let redis: OwnEngine
  let clock: MovableClock
  let replicas: readonly [TestApi, TestApi]
  let secret: string

  before(async function () {
    mongo = await aMongoDatabase(this)
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    clock = new MovableClock()
    const distributed = { mongodbUrl: mongo.url, redisUrl: redis.url, redisPrefix: PREFIX }
    replicas = [
      await startApi({ clock, config: { distributed, expectedReplicas: 2 } }),
      await startApi({ clock, config: { distributed, expectedReplicas: 2 } }),
    ]
    ;({ secret } = await replicas[0].issueKey('free'))
  })

  afterEach(async () => {
    await redis.start()
    for (const replica of replicas) await replica.stop()
  })

  after(async () => {
    await redis?.stop()
    await mongo?.drop()
  })

  const sendTo = (replica: 0 | 1, path: string) => replicas[replica].send(path, { key: secret })
  const getUsage = async (replica: 0 | 1 = 0) => {
    const response = await sendTo(replica, '/v1/usage')
    expect(response.status).to.equal(200)
    return response.json
  }
  /** The quota script reads the hash of a key once per operation. */
  const countQuotaReads = () =>
    withRedis(redis.url, async (client) => Number(/^cmdstat_hmget:calls=(\d+)/m.exec(await client.info('commandstats'))?.[1] ?? 0))

  it('shows on each replica what all replicas have charged, once a second has passed', async () => {
    expect((await getUsage(1)).day.used).to.equal(0)
    for (const replica of [0, 1, 0] as const) expect((await sendTo(replica, '/v1/pets')).status).to.equal(200)
    clock.advanceMs(1_000)
    for (const replica of [0, 1] as const) expect((await getUsage(replica)).day).to.include({ limit: 1000, used: 3, remaining: 997 })
  })

  it('reads the quota in Redis once for 100 requests at the same time, and once for 100 requests in the same second', async () => {
    const before = await countQuotaReads()
    await Promise.all(Array.from({ length: 100 }, () => getUsage()))
    expect((await countQuotaReads()) - before).to.equal(1)
    clock.advanceMs(1_000)
    for (let request = 0; request < 100; request++) {
      clock.advanceMs(9)
      await getUsage()
    }
    expect((await countQuotaReads()) - before).to.equal(2)
  })

  it('responds while Redis is unavailable, with what this replica can still grant', async () => {
    for (let request = 0; request < 10; request++) await sendTo(0, '/v1/pets')
    await redis.kill()
    await until('the circuit breaker is open', () => !replicas[0].redis?.breaker.isUp)
    const admitted = await sendTo(0, '/v1/pets')
    expect(admitted.status).to.equal(200)
    const { minute } = await getUsage()
    expect(minute).to.include({ limit: 60, remaining: readQuotaHeaders(admitted).remaining })
    expect(minute.used + minute.remaining).to.equal(60)
    expect(minute.remaining).to.be.within(1, 49)
  })
})
