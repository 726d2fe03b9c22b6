import { expect } from 'chai'
import type { Fault, FaultOutcome } from '../support/fault-measurement.js'
import { itKeepsItsPromises, measureFault, untilLoadContinues } from '../support/fault-measurement.js'
import type { ListedPet } from '../support/pet-writers.js'
import { listAllPets } from '../support/pet-writers.js'
import { redisChanges } from '../support/replicas.js'
import { ServiceUnderFaults } from '../support/service-under-faults.js'
import { until } from '../support/until.js'

const REPLICAS = 3
const FLUSHES = 3
/** Longer than the timeout of a decision. */
const SLOW_REDIS_MS = 200
/** Shorter than the timeout of a command, so that the delays of several commands add up to more than the deadline of a request. */
const SLOW_MONGO_MS = 1_300

describe(`${REPLICAS} replicas under mixed load`, () => {
  let service: ServiceUnderFaults

  before(async function () {
    this.timeout(60_000)
    service = await ServiceUnderFaults.start(this, REPLICAS)
  })
  after(() => service?.stop())

  const isRedisDown = async () => (await Promise.all(service.mix.replicas.map(redisChanges))).every(({ down, up }) => down >= up)
  const isMongoDown = async () => service.mix.writers.written.slice(-4).every(({ response }) => response?.status === 503)
  const lastReplica = () => service.lastReplica

  const faults: readonly Omit<Fault, 'isHealthy'>[] = [
    // First, because the server that stands in for MongoDB may corrupt an index if it is killed after several hundred writes.
    {
      what: 'MongoDB is killed',
      part: 'mongodb',
      begin: () => service.mongo.kill(),
      isNoticed: isMongoDown,
      end: () => service.mongo.start(),
    },
    {
      what: 'Redis is frozen',
      part: 'redis',
      begin: () => service.redis.freeze(),
      isNoticed: isRedisDown,
      end: () => service.redis.unfreeze(),
    },
    {
      what: 'Redis is slow',
      part: 'redis',
      begin: async () => void (service.redisProxy.delayMs = SLOW_REDIS_MS),
      isNoticed: isRedisDown,
      async end() {
        service.redisProxy.delayMs = 0
        // New responses must not overtake delayed ones.
        service.redisProxy.closeConnections()
      },
    },
    {
      what: 'Redis is killed and starts without data',
      part: 'redis',
      begin: () => service.redis.kill(),
      isNoticed: isRedisDown,
      end: () => service.redis.start(),
    },
    {
      what: `Redis is emptied ${FLUSHES} times`,
      part: 'redis',
      async begin() {
        for (let flushes = 0; flushes < FLUSHES; flushes += 1) {
          await service.flushRedis()
          await untilLoadContinues(service.mix)
          await until('every replica uses Redis again', () => service.isHealthy(), 15_000)
        }
      },
    },
    {
      what: 'MongoDB is frozen',
      part: 'mongodb',
      begin: () => service.mongo.freeze(),
      isNoticed: isMongoDown,
      end: () => service.mongo.unfreeze(),
    },
    {
      what: 'MongoDB is slow',
      part: 'mongodb',
      begin: async () => void (service.mongoProxy.delayMs = SLOW_MONGO_MS),
      isNoticed: async () => service.mix.writers.written.slice(-4).every(({ tookMs }) => tookMs > SLOW_MONGO_MS),
      async end() {
        service.mongoProxy.delayMs = 0
        service.mongoProxy.closeConnections()
      },
    },
    { what: 'a replica is added', part: 'replicas', begin: () => service.addReplica() },
    {
      what: 'a replica is frozen',
      part: 'replicas',
      disturbed: lastReplica,
      begin: async () => service.lastReplica.signal('SIGSTOP'),
      end: async () => service.lastReplica.signal('SIGCONT'),
    },
    {
      what: 'a replica is killed',
      part: 'replicas',
      disturbed: lastReplica,
      async begin() {
        const killed = service.lastReplica
        await killed.stop('SIGKILL')
        service.mix.remove(killed)
      },
    },
    {
      what: 'a replica stops',
      part: 'replicas',
      async begin() {
        const stopped = service.lastReplica
        service.mix.remove(stopped)
        expect(await stopped.stop()).to.equal(0)
      },
    },
  ]

  for (const fault of faults) {
    describe(`while ${fault.what},`, () => {
      let outcome: FaultOutcome

      before(async function () {
        this.timeout(60_000)
        outcome = await measureFault(service.mix, service.direct, { ...fault, isHealthy: () => service.isHealthy() })
      })
      after(async () => {
        await Promise.all([service.redis.start(), service.mongo.start()])
        service.redisProxy.delayMs = 0
        service.mongoProxy.delayMs = 0
        for (const replica of service.mix.replicas) replica.signal('SIGCONT')
      })

      itKeepsItsPromises(() => outcome, { mayReturn503: fault.part === 'mongodb', slowestMs: fault.part === 'redis' ? 1_000 : 3_000 })
    })
  }

  describe('afterwards,', () => {
    it('every acknowledged pet is there, and one pet per Idempotency-Key', async () => {
      const { mix } = service
      await mix.stop()
      const pets = await listAllPets(service.lastReplica, mix.writerKey)
      expect(pets).to.include.deep.members(mix.writers.acknowledged.map(({ response }) => response?.json as ListedPet))
      expect(new Set(pets.map(({ id }) => id)).size).to.equal(pets.length)
      expect(new Set(pets.map(({ name }) => name)).size).to.equal(pets.length)
    })
  })
})
