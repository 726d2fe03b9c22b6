import { expect } from 'chai'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { anOwnRedis } from '../support/engines/redis-engine.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses } from '../support/process.js'
import { freeKeyWithTime, getMinuteNumber, redisChanges, sharedSettings, startServices } from '../support/replicas.js'
import type { StoredKey } from '../support/stored-key.js'
import { until } from '../support/until.js'

const FREE_LIMIT = 60
const SECONDS_FOR_AN_OUTAGE = 20

describe('replicas that are started and stopped, without EXPECTED_REPLICAS,', function () {
  this.timeout(60_000)
  let mongo: MongoDatabase
  let redis: OwnEngine
  let settings: Settings
  const replicas: ServiceProcess[] = []

  before(async function () {
    mongo = await aMongoDatabase(this)
    redis = await anOwnRedis(this)
    settings = sharedSettings(mongo, redis.url)
  })

  after(async () => {
    await endProcesses()
    await redis?.stop()
    await mongo?.drop()
  })

  for (const [count, share] of [
    [3, 20],
    [6, 10],
    [2, 30],
  ] as const) {
    it(`grant ${share} of ${FREE_LIMIT} requests each while Redis is unavailable, if ${count} replicas are running`, async () => {
      await scaleTo(count)
      const key = await freeKeyWithTime(settings, SECONDS_FOR_AN_OUTAGE)
      const minute = getMinuteNumber(key.keyId)
      await redis.freeze()
      await untilUnavailable()
      const granted = await Promise.all(replicas.map((replica) => countGranted(replica, key)))
      await redis.unfreeze()
      console.error(`Figures: ${count} replicas, Redis frozen: ${granted.join(' + ')} of ${FREE_LIMIT}`)
      expect(getMinuteNumber(key.keyId), 'the machine is too slow for an outage within one minute').to.equal(minute)
      expect(granted).to.deep.equal(replicas.map(() => share))
    })
  }

  it('grant one quota together when Redis is killed after a part of it is used', async () => {
    await scaleTo(2)
    await until('every replica uses Redis', async () => (await Promise.all(replicas.map(redisChanges))).every(({ down, up }) => up > down))
    const key = await freeKeyWithTime(settings, SECONDS_FOR_AN_OUTAGE)
    const minute = getMinuteNumber(key.keyId)
    for (let sent = 0; sent < 10; sent += 1) expect((await replicas[sent % 2]?.send('/v1/pets', { key: key.key }))?.status).to.equal(200)
    await redis.kill()
    await untilUnavailable()
    const granted = await Promise.all(replicas.map((replica) => countGranted(replica, key)))
    const total = granted.reduce((sum, each) => sum + each, 10)
    console.error(`Figures: 2 replicas, Redis killed: 10 + ${granted.join(' + ')} = ${total} of ${FREE_LIMIT}`)
    expect(getMinuteNumber(key.keyId), 'the machine is too slow for an outage within one minute').to.equal(minute)
    expect(total).to.be.within(FREE_LIMIT, FREE_LIMIT + replicas.length)
  })

  /** Starts or stops replicas, and resolves when each has noticed. */
  async function scaleTo(count: number): Promise<void> {
    if (count > replicas.length) replicas.push(...(await startServices(count - replicas.length, settings)))
    await Promise.all(replicas.splice(count).map((replica) => replica.stop()))
    const readCount = async ({ adminUrl }: ServiceProcess) => {
      const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
      return Number(/^petstore_replicas (\d+)$/m.exec(metrics)?.[1])
    }
    await until(
      `each replica counts ${count}`,
      async () => (await Promise.all(replicas.map(readCount))).every((each) => each === count),
      15_000,
    )
  }

  async function untilUnavailable(): Promise<void> {
    const { key } = await freeKeyWithTime(settings, 1)
    const isDown = async (replica: ServiceProcess) => {
      await replica.send('/v1/pets', { key })
      const { down, up } = await redisChanges(replica)
      return down === up
    }
    await until('each replica has detected the outage', async () => (await Promise.all(replicas.map(isDown))).every(Boolean))
  }

  /** Sends requests until one is rejected. */
  async function countGranted(replica: ServiceProcess, { key }: StoredKey): Promise<number> {
    for (let granted = 0; ; granted += 1) {
      const { status } = await replica.send('/v1/pets', { key })
      if (status === 429) return granted
      expect(status).to.equal(200)
    }
  }
})
