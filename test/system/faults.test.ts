import { expect } from 'chai'
import { countMostGranted, expectCompleteResponse, findSlowestMs } from '../support/load-checks.js'
import type { Hit } from '../support/load-generator.js'
import { countByStatus } from '../support/load-generator.js'
import type { Caller } from '../support/load-mix.js'
import { STATUSES } from '../support/load-mix.js'
import type { ListedPet } from '../support/pet-writers.js'
import { listAllPets } from '../support/pet-writers.js'
import type { ServiceProcess } from '../support/process.js'
import { issueKey } from '../support/process.js'
import { freeKeyWithTime, redisChanges, toUsage } from '../support/replicas.js'
import { ServiceUnderFaults } from '../support/service-under-faults.js'
import { until } from '../support/until.js'

const REPLICAS = 3
const FREE_LIMIT = 60
const SECONDS_FOR_A_FAULT = 25
const FLUSHES = 3
/** Longer than the timeout of a decision. */
const SLOW_REDIS_MS = 200
/** Longer than the deadline of a request. */
const SLOW_MONGO_MS = 3_000
/** The deadline of a request is 2 s. */
const SLOWEST_MS = { redis: 1_000, replicas: 1_000, mongodb: 3_000 }

interface Fault {
  readonly what: string
  readonly part: 'redis' | 'mongodb' | 'replicas'
  readonly begin: () => Promise<unknown>
  /** Whether the load has met the fault. By default, the load continues for a moment. */
  readonly isNoticed?: () => Promise<boolean>
  readonly end?: () => Promise<unknown>
}

describe(`${REPLICAS} replicas under mixed load`, () => {
  let service: ServiceUnderFaults
  /** Replicas that may break connections or delay responses, because a fault concerns them. */
  let disturbed = new Set<ServiceProcess>()

  before(async function () {
    this.timeout(60_000)
    service = await ServiceUnderFaults.start(this, REPLICAS)
  })
  after(() => service?.stop())

  async function countOpenings(): Promise<number[]> {
    return Promise.all(service.mix.replicas.map(async (replica) => (await redisChanges(replica)).down))
  }
  const disturb = (replica: ServiceProcess) => {
    disturbed = new Set([replica])
    return replica
  }

  const faults: readonly Fault[] = [
    { what: 'Redis is frozen', part: 'redis', begin: () => service.redis.freeze(), end: () => service.redis.unfreeze() },
    {
      what: 'Redis is slow',
      part: 'redis',
      begin: async () => void (service.redisProxy.delayMs = SLOW_REDIS_MS),
      async end() {
        service.redisProxy.delayMs = 0
        // New responses must not overtake delayed ones.
        service.redisProxy.closeConnections()
      },
    },
    { what: 'Redis is killed and starts without data', part: 'redis', begin: () => service.redis.kill(), end: () => service.redis.start() },
    {
      what: `Redis is emptied ${FLUSHES} times`,
      part: 'redis',
      isNoticed: async () => true,
      async begin() {
        for (let flushes = 0; flushes < FLUSHES; flushes += 1) {
          await service.flushRedis()
          await untilLoadContinues()
          await until('every replica uses Redis again', () => service.isHealthy(), 15_000)
        }
      },
    },
    { what: 'MongoDB is frozen', part: 'mongodb', begin: () => service.mongo.freeze(), end: () => service.mongo.unfreeze() },
    {
      what: 'MongoDB is slow',
      part: 'mongodb',
      begin: async () => void (service.mongoProxy.delayMs = SLOW_MONGO_MS),
      async end() {
        service.mongoProxy.delayMs = 0
        service.mongoProxy.closeConnections()
      },
    },
    { what: 'MongoDB is killed', part: 'mongodb', begin: () => service.mongo.kill(), end: () => service.mongo.start() },
    { what: 'a replica is added', part: 'replicas', begin: () => service.addReplica() },
    {
      what: 'a replica is frozen',
      part: 'replicas',
      begin: async () => disturb(service.lastReplica).signal('SIGSTOP'),
      end: async () => service.lastReplica.signal('SIGCONT'),
    },
    {
      what: 'a replica is killed',
      part: 'replicas',
      async begin() {
        await disturb(service.lastReplica).stop('SIGKILL')
        service.mix.remove(service.lastReplica)
      },
    },
    {
      what: 'a replica stops',
      part: 'replicas',
      async begin() {
        const { lastReplica } = service
        service.mix.remove(lastReplica)
        expect(await lastReplica.stop()).to.equal(0)
      },
    },
  ]

  /** Resolves when the writers and another caller got more responses. */
  async function untilLoadContinues(): Promise<void> {
    const { written } = service.mix.writers
    const before = written.length
    await until('the load continues', () => written.length >= before + 20, 20_000)
  }

  for (const { what, part, begin, isNoticed, end } of faults) {
    describe(`while ${what},`, () => {
      let hits: Readonly<Record<Caller, readonly Hit[]>>
      let hotKeyId: string
      let openings: number
      let clients: number
      let steadyUsed: number

      before(async function () {
        this.timeout(60_000)
        const { mix } = service
        disturbed = new Set()
        mix.takeHits()
        const steadyKey = await issueKey(service.direct)
        const steady = mix.startLoad(steadyKey.key, 30)
        await until('the load has begun', () => steady.count(200) >= 50)
        const hotKey = await freeKeyWithTime(service.direct, SECONDS_FOR_A_FAULT)
        hotKeyId = hotKey.keyId
        const hot = mix.startLoad(hotKey.key, 60)
        await until('a part of the limit is used', () => hot.count(200) >= 20)

        const openingsBefore = await countOpenings()
        const isNoticedBy = {
          redis: async () => (await countOpenings()).every((count, index) => count > (openingsBefore[index] ?? 0)),
          mongodb: async () => mix.writers.written.slice(-4).every(({ response }) => response?.status === 503),
          replicas: async () => true,
        }
        const startMs = performance.now()
        await begin()
        await until('the load meets the fault', isNoticed ?? isNoticedBy[part], 20_000)
        if (part !== 'mongodb') await untilLoadContinues()
        await end?.()
        const endMs = performance.now()
        await until('every replica is healthy', () => service.isHealthy(), 20_000)
        const healthyMs = performance.now()
        await untilLoadContinues()
        await Promise.all([mix.stopLoad(hot), mix.stopLoad(steady)])

        clients = mix.replicas.length + disturbed.size
        openings = (await countOpenings()).reduce((sum, count) => sum + count, 0) - openingsBefore.slice(0, mix.replicas.length).reduce((sum, count) => sum + count, 0)
        hits = { ...mix.takeHits(), 'a key with quota left': steady.hits, 'a key that exhausts its minute': hot.hits }
        steadyUsed = (await toUsage(steadyKey.keyId, service.direct)).day.used

        const statuses = Object.entries(hits).map(([caller, each]) => `${caller} ${JSON.stringify(countByStatus(each))}`)
        console.error(
          [
            `Figures: ${what}: ${Math.round(endMs - startMs)} ms, healthy ${Math.round(healthyMs - endMs)} ms after that`,
            `granted ${countMostGranted(hot.hits, hotKeyId)} of at most ${getBound()}`,
            `slowest response ${findSlowestMs(listUndisturbed())} ms`,
            `counted ${steadyUsed} of ${steady.count(200)}`,
            `circuit breakers opened ${openings} times`,
            ...statuses,
          ].join('; '),
        )
      })

      after(async () => {
        await Promise.all([service.redis.start(), service.mongo.start()])
        service.redisProxy.delayMs = 0
        service.mongoProxy.delayMs = 0
      })

      /** Without an outage of Redis, exactly the limit. Otherwise the replicas may also grant their shares and what was in flight. */
      function getBound(): number {
        return openings === 0 ? FREE_LIMIT : 2 * FREE_LIMIT + clients + clients
      }

      function listUndisturbed(): Hit[] {
        const urls = new Set([...disturbed].map(({ url }) => url))
        return Object.values(hits).flatMap((each) => each.filter(({ url }) => !urls.has(url)))
      }

      it('each caller gets its documented statuses, and 503 only because of MongoDB', () => {
        for (const [caller, each] of Object.entries(hits)) {
          const allowed = [...STATUSES[caller as Caller], ...(part === 'mongodb' ? [503] : []), ...(disturbed.size > 0 ? [0] : [])]
          expect(allowed, caller).to.include.members(Object.keys(countByStatus(each)).map(Number))
        }
        expect(listUndisturbed().filter(({ url, status }) => url !== '' && status === undefined)).to.deep.equal([])
      })

      it('every response is complete and has a unique request ID', () => {
        const responses = Object.values(hits)
          .flat()
          .filter(({ status }) => status !== undefined)
        for (const response of responses) expectCompleteResponse(response)
        expect(new Set(responses.map(({ headers }) => headers['x-request-id']))).to.have.property('size', responses.length)
      })

      it('a key gets no more requests per minute than documented', () => {
        expect(countMostGranted(hits['a key that exhausts its minute'], hotKeyId)).to.be.within(1, getBound())
      })

      it('every granted request is counted once, except for those in flight', () => {
        const granted = countByStatus(hits['a key with quota left'])[200] ?? 0
        expect(steadyUsed).to.be.within(granted - openings, granted + openings + disturbed.size)
      })

      it(`no response takes longer than ${SLOWEST_MS[part]} ms`, () => {
        expect(findSlowestMs(listUndisturbed())).to.be.below(SLOWEST_MS[part])
      })
    })
  }

  it('keeps every acknowledged pet, and one pet per Idempotency-Key', async () => {
    const { mix } = service
    await mix.stop()
    const pets = await listAllPets(service.lastReplica, mix.writerKey)
    expect(pets).to.include.deep.members(mix.writers.acknowledged.map(({ response }) => response?.json as ListedPet))
    expect(new Set(pets.map(({ id }) => id)).size).to.equal(pets.length)
    expect(new Set(pets.map(({ name }) => name)).size).to.equal(pets.length)
  })
})
