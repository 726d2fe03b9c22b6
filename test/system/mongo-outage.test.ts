import { expect } from 'chai'
import { expectError, readRateLimitFields } from '../support/responses.js'
import { freePort } from '../support/engines/free-port.js'
import type { RedisDatabase } from '../support/engines/redis-engine.js'
import { anOwnRedis, aRedisDatabase } from '../support/engines/redis-engine.js'
import { sharedSettings } from '../support/replicas.js'
import { anOwnMongo } from '../support/engines/mongo-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import type { ListedPet } from '../support/pet-writers.js'
import { listAllPets, PetWriters } from '../support/pet-writers.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, issueKey, startService, startServiceUnready } from '../support/process.js'
import type { FaultInjectionProxy } from '../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../support/fault-injection-proxy.js'
import { until, within } from '../support/until.js'

const CLIENTS = 8

describe('the service during an outage of MongoDB', () => {
  let server: OwnEngine
  let proxy: FaultInjectionProxy
  let redis: RedisDatabase
  let settings: Settings
  let key: string

  before(async function () {
    redis = await aRedisDatabase(this)
    server = await anOwnMongo(this)
    proxy = await startFaultInjectionProxy(server.url)
  })

  after(async () => {
    await endProcesses()
    await proxy?.close()
    await server?.stop()
    await redis?.release()
  })

  /** Selects a new database and issues a key on it. */
  async function useDatabase(name: string, url = server.url): Promise<void> {
    settings = sharedSettings({ url: `${url}/${name}?directConnection=true` }, redis.url)
    ;({ key } = await issueKey(settings))
  }

  for (const [what, database, urlOf, begin, end] of [
    ['it is frozen', 'frozen', () => server.url, () => server.freeze(), () => server.unfreeze()],
    ['it is killed', 'killed', () => server.url, () => server.kill(), () => server.start()],
    [
      'its connections stop responding',
      'unresponsive',
      () => `mongodb://${proxy.address}`,
      async () => proxy.stopForwarding(),
      async () => proxy.resume(),
    ],
  ] as const) {
    describe(`because ${what} during writes,`, () => {
      let service: ServiceProcess
      let writers: PetWriters
      let remainingBefore: number
      let remainingAfter: number

      before(async function () {
        this.timeout(30_000)
        await useDatabase(database, urlOf())
        service = await startService(settings)
        remainingBefore = await remainingToday(service)
        writers = new PetWriters(service, key, CLIENTS)
        await until('50 pets are acknowledged', () => writers.count(201) >= 50)

        const startMs = performance.now()
        await begin()
        await until('each client has received two 503 on average', () => writers.count(503) >= 2 * CLIENTS, 20_000)
        expect((await service.send('/readyz')).status).to.equal(200)
        expect((await service.send('/livez')).status).to.equal(200)
        expect(await getHealth(service)).to.deep.include({ status: 'failing', ready: true, dependencies: { mongodb: 'down', redis: 'up' } })

        const acknowledgedBefore = writers.count(201)
        await end()
        const endMs = performance.now()
        await until('/health reports ok again', async () => (await getHealth(service)).status === 'ok', 8_000)
        const readyMs = performance.now()
        await until('50 more pets are acknowledged', () => writers.count(201) >= acknowledgedBefore + 50, 20_000)
        await until('the end of the outage is logged', () => service.logLines.some((line) => line.includes('"MongoDB is available"')))
        await writers.stop()
        remainingAfter = await remainingToday(service)

        const slowestMs = Math.max(...writers.written.filter(({ response }) => response?.status === 503).map(({ tookMs }) => tookMs))
        const firstMs = Math.min(...writers.acknowledged.map((written) => written.endMs).filter((writtenMs) => writtenMs > endMs))
        const durations = `down for ${Math.round(endMs - startMs)} ms, healthy ${Math.round(readyMs - endMs)} ms and first 201 ${Math.round(firstMs - endMs)} ms after that`
        console.error(
          `Figures: ${what}: ${writers.count(201)} × 201, ${writers.count(503)} × 503, slowest 503 ${Math.round(slowestMs)} ms; ${durations}`,
        )
      })

      after(async () => {
        proxy.resume()
        await server.start()
        await writers?.stop()
        await endProcesses()
      })

      it('returns 201 or 503 for every write, and 503 with Retry-After in whole seconds', () => {
        const failures = service.logLines.filter((line) => line.includes('internal_error')).join('\n')
        expect(new Set(writers.written.map(({ response }) => response?.status)), failures).to.deep.equal(new Set([201, 503]))
        for (const { response } of writers.written) {
          if (response?.status !== 503) continue
          expectError(response, 503, 'service_unavailable')
          expect(response.headers['retry-after']).to.match(/^[1-9]\d*$/)
        }
      })

      it('logs the outage and its end in one line each, and the reason of each 503 in the line of the request', () => {
        const lines = service.logLines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
        const select = (message: string) => lines.filter(({ msg }) => String(msg).startsWith(message))
        expect(select('MongoDB is ').map(({ level, msg }) => [level, msg])).to.deep.equal([
          [40, 'MongoDB is unavailable: requests that need it get 503'],
          [30, 'MongoDB is available'],
        ])
        expect(select('MongoDB is unavailable')[0]?.['reason']).to.match(/^MongoDB (is unavailable: \S|did not respond)/)
        expect(lines.filter(({ level }) => Number(level) >= 50)).to.deep.equal([])
        for (const request of select('request')) if (request['status'] === 503) expect(request['reason']).to.be.a('string')
      })

      it('charges no quota for 503', () => {
        expect(remainingBefore - remainingAfter).to.equal(writers.count(201) + 1)
      })

      it('keeps every acknowledged pet, and one pet per Idempotency-Key', async () => {
        const pets = await listAllPets(service, key)
        expect(pets).to.include.deep.members(writers.acknowledged.map(({ response }) => response?.json as ListedPet))
        expect(new Set(pets.map(({ id }) => id)).size).to.equal(pets.length)
        expect(new Set(pets.map(({ name }) => name)).size).to.equal(pets.length)
      })
    })
  }

  describe('while it starts or stops,', () => {
    before(() => useDatabase('starts'))

    afterEach(async () => {
      await endProcesses()
      await server.start()
    })

    it('starts without MongoDB, is alive but not ready, and becomes ready when MongoDB is available', async () => {
      await server.kill()
      const service = await startServiceUnready({ api: await freePort(), admin: await freePort() }, settings)
      expect((await service.send('/readyz')).status).to.equal(503)
      expectError(await service.send('/v1/pets', { key }), 503, 'service_unavailable')

      await server.start()
      await until('it is ready', async () => (await service.send('/readyz')).status === 200)
      expect((await service.send('/v1/pets', { key })).status).to.equal(200)
    })

    it('stops gracefully while it waits for MongoDB at its start', async () => {
      await server.kill()
      const service = await startServiceUnready({ api: await freePort(), admin: await freePort() }, settings)
      expect(await within(8_000, 'the service ends', service.stop())).to.equal(0)
    })

    for (const [what, begin] of [
      ['is frozen', () => server.freeze()],
      ['was killed', () => server.kill()],
    ] as const) {
      it(`stops gracefully while MongoDB ${what}`, async () => {
        const service = await startService(settings)
        expect((await service.send('/v1/pets', { key })).status).to.equal(200)
        await begin()
        expect(await within(8_000, 'the service ends', service.stop())).to.equal(0)
      })
    }

    it('stops within SHUTDOWN_TIMEOUT_MS, including closing MongoDB and Redis, while both are frozen', async function () {
      const ownRedis = await anOwnRedis(this)
      const service = await startService({ ...settings, REDIS_URL: ownRedis.url, SHUTDOWN_TIMEOUT_MS: '300' })
      expect((await service.send('/v1/pets', { key })).status).to.equal(200)
      await Promise.all([server.freeze(), ownRedis.freeze()])
      // Opens the circuit breaker, whose probe then waits for Redis.
      await service.send('/v1/pets', { key })
      const signalledMs = performance.now()
      expect(await within(8_000, 'the service ends', service.stop())).to.equal(0)
      expect(performance.now() - signalledMs).to.be.below(2_000)
      await ownRedis.stop()
    })
  })

  async function getHealth({ adminUrl }: ServiceProcess): Promise<{ status: string }> {
    return (await (await fetch(`${adminUrl}/health`)).json()) as { status: string }
  }

  async function remainingToday(service: ServiceProcess): Promise<number> {
    const response = await service.send('/v1/pets?limit=1', { key })
    expect(response.status).to.equal(200)
    return readRateLimitFields(response)['day']?.remaining ?? Number.NaN
  }
})
