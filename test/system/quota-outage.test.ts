import { expect } from 'chai'
import { Redis } from 'ioredis'
import { readQuotaHeaders } from '../support/responses.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { anOwnRedis } from '../support/engines/redis-engine.js'
import type { Hit } from '../support/load-generator.js'
import { countByStatus, LoadGenerator, describeLatencies } from '../support/load-generator.js'
import type { RedisChanges } from '../support/replicas.js'
import type { StoredKey } from '../support/stored-key.js'
import {
  freeKeyWithTime,
  loggedRedisChanges,
  getMinuteNumber,
  redisChanges,
  sharedSettings,
  startReplicas,
  toUsage,
} from '../support/replicas.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, issueKey } from '../support/process.js'
import type { FaultInjectionProxy } from '../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../support/fault-injection-proxy.js'
import { until } from '../support/until.js'

const REPLICAS = 4
const CLIENTS_EACH = 2
const FREE_LIMIT = 60
const SECONDS_FOR_A_PROBLEM = 40
/** Longer than the timeout, so that each replica detects the outage. */
const PAUSE_MS = 2_000
const TOO_LATE_MS = 200

interface Problem {
  readonly what: string
  readonly begin: () => Promise<unknown>
  readonly end: () => Promise<unknown>
  /** Which commands without a response Redis executes. */
  readonly executes: 'all' | 'some' | 'none, and loses its data'
  readonly isBehindProxy?: boolean
}

describe(`${REPLICAS} replicas under load, when Redis`, () => {
  let mongo: MongoDatabase
  let redis: OwnEngine
  let proxy: FaultInjectionProxy
  let operator: Redis
  let settings: Settings
  let direct: ServiceProcess[]
  let behindProxy: ServiceProcess[]

  before(async function () {
    mongo = await aMongoDatabase(this)
    // The server stores nothing on disk, so a kill loses all counts: the worst case.
    redis = await anOwnRedis(this)
    this.timeout(90_000)
    proxy = await startFaultInjectionProxy(redis.url)
    operator = new Redis(redis.url, { retryStrategy: () => 50 })
    // The client reconnects automatically, and each command reports its own error.
    operator.on('error', () => undefined)
    settings = sharedSettings(mongo, redis.url)
    direct = await startReplicas(REPLICAS, settings)
    behindProxy = await startReplicas(REPLICAS, { ...settings, REDIS_URL: `redis://${proxy.address}` })
  })

  after(async () => {
    await endProcesses()
    operator?.disconnect()
    await proxy?.close()
    await redis?.stop()
    await mongo?.drop()
  })

  const restart = async () => {
    await redis.kill()
    await redis.start()
  }
  const problems: readonly Problem[] = [
    { what: 'freezes (SIGSTOP)', executes: 'all', begin: () => redis.freeze(), end: () => redis.unfreeze() },
    {
      what: 'is killed (SIGKILL)',
      executes: 'none, and loses its data',
      begin: () => redis.kill(),
      end: () => redis.start(),
    },
    { what: 'restarts', executes: 'none, and loses its data', begin: restart, end: async () => {} },
    { what: 'pauses (CLIENT PAUSE)', executes: 'some', begin: () => operator.client('PAUSE', PAUSE_MS), end: () => operator.ping() },
    {
      what: 'responds, but the responses are lost',
      executes: 'all',
      isBehindProxy: true,
      begin: async () => proxy.dropResponses(),
      end: async () => proxy.resume(),
    },
    {
      what: 'responds later than the timeout',
      executes: 'all',
      isBehindProxy: true,
      begin: async () => void (proxy.delayMs = TOO_LATE_MS),
      async end() {
        proxy.delayMs = 0
        // New responses must not overtake delayed ones.
        proxy.closeConnections()
      },
    },
  ]

  for (const { what, executes, isBehindProxy = false, begin, end } of problems) {
    describe(`${what},`, () => {
      const loads: LoadGenerator[] = []
      let hot: readonly Hit[]
      let steady: readonly Hit[]
      let usedBeforeAndAfter: readonly [number, number]
      let counted: RedisChanges[]
      let logged: RedisChanges[]

      before(async function () {
        this.timeout(90_000)
        const replicas = isBehindProxy ? behindProxy : direct
        const urls = replicas.map(({ url }) => url)
        const steadyKey = await issueKey(settings)
        const hotKey = await freeKeyWithTime(settings, SECONDS_FOR_A_PROBLEM)
        const minute = getMinuteNumber(hotKey.keyId)
        await until('all replicas use Redis', async () =>
          (await Promise.all(replicas.map(redisChanges))).every(({ down, up }) => up > down),
        )
        const countedBefore = await Promise.all(replicas.map(redisChanges))
        const loggedBefore = replicas.map(loggedRedisChanges)
        const changes = async () => difference(await Promise.all(replicas.map(redisChanges)), countedBefore)

        const steadyLoad = new LoadGenerator(urls, { key: () => steadyKey.key, clientsEach: CLIENTS_EACH, everyMs: 20 })
        loads.push(steadyLoad)
        await until('the load has begun', () => steadyLoad.count(200) > 50)
        const hotLoad = new LoadGenerator(urls, { key: () => hotKey.key, clientsEach: CLIENTS_EACH, everyMs: 40 })
        loads.push(hotLoad)
        await until('a part of the limit is used', () => hotLoad.count(200) >= 15)

        const startMs = performance.now()
        await begin()
        await until('each replica has detected the outage', async () => (await changes()).every(({ down }) => down > 0), 15_000)
        const servedAtFirst = steadyLoad.count(200)
        await until('each client was admitted repeatedly during the outage', () => steadyLoad.count(200) >= servedAtFirst + 200, 20_000)
        await end()
        const endedMs = performance.now()
        await until('each replica uses Redis again', async () => (await changes()).every(({ down, up }) => up === down), 20_000)
        const backMs = performance.now()

        const usedBefore = (await toUsage(steadyKey.keyId, settings)).day.used
        const servedBefore = steadyLoad.count(200)
        await until('the load continues', () => steadyLoad.count(200) >= servedBefore + 200, 20_000)
        await Promise.all(loads.map((load) => load.stop()))
        expect(getMinuteNumber(hotKey.keyId), 'the machine is too slow for a problem within one minute').to.equal(minute)
        usedBeforeAndAfter = [usedBefore, (await toUsage(steadyKey.keyId, settings)).day.used]
        counted = await changes()
        logged = difference(replicas.map(loggedRedisChanges), loggedBefore)
        await until('the replicas count together again', () => areCountsShared(replicas, steadyKey))
        hot = hotLoad.hits
        steady = steadyLoad.hits

        const meanwhile = [...steady, ...hot].filter((hit) => hit.endMs > startMs && hit.startMs < backMs)
        const times = `unavailable for ${Math.round(endedMs - startMs)} ms, all recovered ${Math.round(backMs - endedMs)} ms after that`
        console.error(
          [
            `Figures: Redis ${what}: ${times}`,
            `hot key ${JSON.stringify(countByStatus(hot))}`,
            `steady key ${JSON.stringify(countByStatus(steady))}, of which counted ${usedBeforeAndAfter[1]}`,
            `${meanwhile.length} responses meanwhile, ${describeLatencies(meanwhile)}`,
            `outages noticed: ${counted.map(({ down }) => down).join(' ')}`,
          ].join('; '),
        )
      })

      after(async () => {
        await Promise.all(loads.map((load) => load.stop()))
        await redis.start()
        if (!isBehindProxy) return
        proxy.delayMs = 0
        proxy.resume()
        // Connections that are open stay affected by the fault.
        proxy.closeConnections()
      })

      it('there is no 5xx and no broken connection: a key with quota left gets 200, any other key 429', () => {
        expect(countByStatus(steady)).to.have.all.keys('200')
        expect(countByStatus(hot)).to.have.all.keys('200', '429')
      })

      it('every response carries the X-RateLimit triple', () => {
        for (const { limit, remaining } of [...steady, ...hot].map(readQuotaHeaders)) expect(remaining).to.be.within(0, limit)
      })

      it('a key gets at most twice its limit plus one request per replica in that minute', () => {
        expect(countByStatus(hot)[200]).to.be.within(1, 2 * FREE_LIMIT + REPLICAS)
      })

      it('usage increases again afterwards', () => {
        expect(usedBeforeAndAfter[1]).to.be.above(usedBeforeAndAfter[0])
      })

      it('each state change increments petstore_redis_changes_total by one and logs one line', () => {
        expect(counted.every(({ down }) => down >= 1)).to.equal(true)
        expect(counted.map(({ up }) => up)).to.deep.equal(counted.map(({ down }) => down))
        expect(logged).to.deep.equal(counted)
      })

      if (executes === 'all') {
        it('every admitted request is counted afterwards, and none twice', () => {
          expect(usedBeforeAndAfter[1]).to.equal(countByStatus(steady)[200])
        })
      }

      if (executes === 'some') {
        it('every admitted request is counted afterwards, except for those in flight when it began', () => {
          const served = countByStatus(steady)[200] ?? 0
          expect(usedBeforeAndAfter[1]).to.be.within(served - CLIENTS_EACH * REPLICAS, served)
        })
      }
    })
  }
})

/** Whether each replica, in turn, reports one remaining request fewer than the previous one. */
async function areCountsShared(replicas: readonly ServiceProcess[], { key }: StoredKey): Promise<boolean> {
  const left: number[] = []
  for (const replica of replicas) left.push(readQuotaHeaders(await replica.send('/v1/pets', { key })).remaining)
  return left.every((each, index) => index === 0 || each === (left[index - 1] ?? 0) - 1)
}

function difference(now: readonly RedisChanges[], before: readonly RedisChanges[]): RedisChanges[] {
  return now.map(({ down, up }, index) => ({ down: down - (before[index]?.down ?? 0), up: up - (before[index]?.up ?? 0) }))
}
