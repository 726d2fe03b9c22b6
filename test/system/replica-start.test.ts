import { expect } from 'chai'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import { freePort } from '../support/engines/free-port.js'
import type { RedisDatabase } from '../support/engines/redis-engine.js'
import { aRedisDatabase } from '../support/engines/redis-engine.js'
import type { FaultInjectionProxy } from '../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../support/fault-injection-proxy.js'
import { countByStatus, LoadGenerator } from '../support/load-generator.js'
import { endProcesses, startService } from '../support/process.js'
import { freeKeyWithTime, sharedSettings } from '../support/replicas.js'

const DAY_LIMIT = 100
/** Shorter than the timeout of a decision, but connecting takes several round trips. */
const SLOW_REDIS_MS = 40

describe('a replica that starts while clients send it requests', () => {
  let mongo: MongoDatabase
  let redis: RedisDatabase
  let slowRedis: FaultInjectionProxy

  before(async function () {
    mongo = await aMongoDatabase(this)
    redis = await aRedisDatabase(this)
    slowRedis = await startFaultInjectionProxy(redis.url)
    slowRedis.delayMs = SLOW_REDIS_MS
  })
  after(async () => {
    await endProcesses()
    await slowRedis?.close()
    await redis?.release()
    await mongo?.drop()
  })

  it('grants no request of a quota that other replicas have used up, because it listens only when it has reached Redis', async () => {
    const settings = { ...sharedSettings(mongo, redis.url), EXPECTED_REPLICAS: '2' }
    const first = await startService(settings)
    const { key } = await freeKeyWithTime(settings, 1, { minute: 2 * DAY_LIMIT, day: DAY_LIMIT })
    const used = new LoadGenerator([first.url], { key: () => key, clientsEach: 4, atMost: DAY_LIMIT })
    await used.done
    expect(countByStatus(used.hits)).to.deep.equal({ 200: DAY_LIMIT })

    const port = await freePort()
    const load = new LoadGenerator([`http://127.0.0.1:${port}`], { key: () => key, clientsEach: 4, everyMs: 1 })
    await startService({ ...settings, REDIS_URL: `redis://${slowRedis.address}${new URL(redis.url).pathname}`, PORT: `${port}` })
    await load.stop()
    const { 0: refused, ...responses } = countByStatus(load.hits)
    expect(refused).to.be.above(0)
    expect(responses).to.have.all.keys('429')
  })
})
