import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { expect } from 'chai'
import type { Dependency } from '../../src/adapters/http/admin/health.js'
import { Health } from '../../src/adapters/http/admin/health.js'
import { listen, makeServer } from '../../src/adapters/http/server/server.js'
import { stop } from '../../src/service.js'
import type { BackingService } from '../../src/wiring/tokens.js'
import type { TestApi } from '../support/api.js'
import { send, startApi } from '../support/api.js'
import { freePort } from '../support/engines/free-port.js'
import type { FakeMongo } from '../support/fake-mongo.js'
import { startFakeMongo } from '../support/fake-mongo.js'
import { Gate } from '../support/gate.js'
import { HeldPetStore } from '../support/held-pet-store.js'
import { endProcesses, runPetstore, startService, startServiceUnready } from '../support/process.js'
import { head } from '../support/raw-socket.js'
import { sharedSettings } from '../support/replicas.js'
import { until, within } from '../support/until.js'
import { issueAmpleKey } from '../support/api.js'

/** Much longer than any step takes, but shorter than the timeout of a test. */
const AMPLE_MS = 15_000

/** Nothing listens there. */
const NO_REDIS = 'redis://127.0.0.1:1'

/** Throws outside every request handler. */
const CRASH_SCRIPT = "process.on('SIGUSR2', () => { throw new Error('planted') })"
const CRASH_ON_SIGUSR2 = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(CRASH_SCRIPT)}` }

describe('a shutdown', function () {
  this.timeout(20_000)
  let pets: HeldPetStore
  let checks: Gate
  let closing: Gate
  let closed: string[]
  let api: TestApi
  let admin: Server
  let adminUrl: string
  let key: string

  beforeEach(async () => {
    pets = new HeldPetStore()
    checks = new Gate()
    closing = new Gate()
    closed = []
    const slow: Dependency = { name: 'slow', isRequired: true, isUp: () => checks.pass().then(() => true) }
    api = await startApi({ doubles: { pets, health: new Health([slow]) } })
    admin = makeServer(api.parts.adminApi, { log: api.parts.log })
    adminUrl = await listen(admin, '127.0.0.1', 0)
    key = await issueAmpleKey(api)
  })

  afterEach(async () => {
    for (const gate of [pets.gate, checks, closing]) gate.open()
    admin.closeAllConnections()
    admin.close()
    await api.stop()
  })

  const aStore = (name: string): BackingService => ({
    name,
    isRequired: true,
    isUp: async () => true,
    prepare: async () => undefined,
    async close() {
      await closing.pass()
      closed.push(name)
    },
  })

  const shutDown = (timeoutMs: number) => {
    const { log, health } = api.parts
    const backingServices = [aStore('mongodb'), aStore('redis')]
    return stop({ log, health, backingServices }, { drainDelayMs: 0, idleGraceMs: 0, timeoutMs }, [api.server, admin])
  }

  it('closes the stores after the last response, and the admin port after the stores', async () => {
    const inFlight = api.send('/v1/pets', { key })
    await until('a request is in flight', () => pets.gate.heldCount === 1)
    checks.open()
    const stopped = shutDown(60_000)
    await until('the API has stopped listening', () => !api.server.listening)

    for (const path of ['/health', '/metrics']) {
      const { status } = await send(adminUrl, path)
      expect({ path, status }, 'while a request is in flight').to.deep.equal({ path, status: path === '/health' ? 503 : 200 })
    }
    expect(closing.heldCount, 'stores that are closing').to.equal(0)

    pets.gate.open()
    expect((await inFlight).status).to.equal(200)
    await until('both stores are closing', () => closing.heldCount === 2)
    expect((await send(adminUrl, '/metrics')).status, 'while the stores close').to.equal(200)

    closing.open()
    await within(AMPLE_MS, 'the shutdown ends', stopped)
    expect(closed).to.have.members(['mongodb', 'redis'])
    expect([api.server.listening, admin.listening]).to.deep.equal([false, false])
  })

  const hanging: Readonly<Record<string, () => Promise<unknown>>> = {
    'a request': async () => {
      checks.open()
      closing.open()
      void api.send('/v1/pets', { key }).catch(() => undefined)
      await until('a request is in flight', () => pets.gate.heldCount === 1)
    },
    'a store that closes': async () => checks.open(),
    'a request on the admin port': async () => {
      closing.open()
      void send(adminUrl, '/health').catch(() => undefined)
      await until('a request is in flight on the admin port', () => checks.heldCount === 1)
    },
  }
  for (const [what, hang] of Object.entries(hanging)) {
    it(`does not wait beyond SHUTDOWN_TIMEOUT_MS for ${what}`, async () => {
      await hang()
      await within(AMPLE_MS, 'the shutdown ends', shutDown(200))
      expect([api.server.listening, admin.listening]).to.deep.equal([false, false])
    })
  }

  it('continues if a store cannot be closed, and logs the reason', async () => {
    const broken: BackingService = { ...aStore('mongodb'), close: () => Promise.reject(new Error('cannot close')) }
    const { log, health } = api.parts
    await stop({ log, health, backingServices: [broken] }, { drainDelayMs: 0, idleGraceMs: 0, timeoutMs: 60_000 }, [api.server, admin])
    expect(admin.listening).to.equal(false)
    expect(JSON.stringify(api.logLines)).to.include('cannot close')
  })
})

describe('the service process', function () {
  this.timeout(20_000)
  let mongo: FakeMongo

  beforeEach(async () => {
    mongo = await startFakeMongo()
  })
  afterEach(async () => {
    await endProcesses()
    await mongo.close()
  })

  it('never becomes ready if it gets SIGTERM while it starts', async () => {
    const creation = mongo.hold('createIndexes')
    const settings = { ...sharedSettings(mongo, NO_REDIS), DRAIN_DELAY_MS: '1500' }
    const service = await startServiceUnready({ api: await freePort(), admin: await freePort() }, settings)
    await until('the start waits for MongoDB alone', () => creation.heldCount === 1 && logs(service.logLines, 'Redis is unavailable'))
    service.signal('SIGTERM')
    await until('the shutdown has begun', () => logs(service.logLines, 'stopping'))
    creation.open()

    const statuses = new Set<number>()
    const isClosed = async () => {
      const response = await service.send('/readyz').catch(() => undefined)
      if (response) statuses.add(response.status)
      return response === undefined
    }
    await until('the API is closed', isClosed, AMPLE_MS)
    const { exitCode, stdout } = await within(AMPLE_MS, 'the process ends', service.ended)
    expect([...statuses]).to.deep.equal([503])
    expect(mongo.received('createIndexes').length, 'the start continued').to.be.above(1)
    expect(stdout).to.not.include('"msg":"ready"')
    expect(exitCode).to.equal(0)
  })

  it('exits with 1 and one sentence if MongoDB rejects its user, and does not try again', async () => {
    const unauthorized = 13
    mongo.reject('createIndexes', unauthorized)
    const ended = runPetstore(['serve'], { ...sharedSettings(mongo, NO_REDIS), PORT: '0', ADMIN_PORT: '0' })
    const { exitCode, stderr } = await within(AMPLE_MS, 'the process ends', ended)
    expect(exitCode).to.equal(1)
    expect(stderr).to.match(/^[^\n]*\bMONGODB_URL\b[^\n]*\n$/)
  })

  it('exits with 1 if an exception is uncaught while it stops', async () => {
    const service = await startService({ DRAIN_DELAY_MS: '1500', ...CRASH_ON_SIGUSR2 })
    service.signal('SIGTERM')
    await until('the shutdown has begun', () => logs(service.logLines, 'stopping'))
    service.signal('SIGUSR2')
    expect(await within(AMPLE_MS, 'the process ends', service.ended)).to.include({ exitCode: 1 })
    expect(service.logLines.filter((line) => line.includes('"msg":"stopping"'))).to.have.lengthOf(1)
  })

  it('exits soon after an uncaught exception, whatever SHUTDOWN_TIMEOUT_MS is and although a client does not read its response', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: '3600000', ...CRASH_ON_SIGUSR2 })
    const { hostname, port } = new URL(service.url)
    const reader = connect(Number(port), hostname).on('error', () => undefined)
    // More than the buffers of the operating system can take.
    reader.pause().write(head('GET /docs/scalar.js HTTP/1.1', ['Host: pets']).repeat(20))
    await service.send('/livez')
    service.signal('SIGUSR2')
    const ended = within(AMPLE_MS, 'the process ends', service.ended).finally(() => reader.destroy())
    expect(await ended).to.include({ exitCode: 1 })
  })

  it('counts on /metrics connections beyond MAX_CONNECTIONS, and clients that disconnect before their response, and no others', async () => {
    const { url, adminUrl, keys } = await startService({ MAX_CONNECTIONS: '2' })
    const count = async (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await send(adminUrl, '/metrics')).text)?.[1])
    const { hostname, port } = new URL(url)
    const open = () => connect(Number(port), hostname).on('error', () => undefined)
    const served = async (socket: Socket, bytes = head('GET /livez HTTP/1.1', ['Host: pets'])) => {
      socket.write(bytes)
      await once(socket, 'data')
      return socket
    }
    const [waitingClient, disconnectingClient] = [await served(open()), await served(open())]
    await once(open().resume(), 'close')
    expect(await count('petstore_dropped_connections_total')).to.equal(1)

    await once(waitingClient.end(), 'close')
    const fields = [
      'Host: pets',
      `Authorization: Bearer ${keys.free}`,
      'Content-Type: application/json',
      'Content-Length: 9',
      'Expect: 100-continue',
    ]
    await served(disconnectingClient, head('POST /v1/pets HTTP/1.1', fields))
    disconnectingClient.resetAndDestroy()
    await until('a client that disconnected is counted', async () => (await count('petstore_clients_gone_total')) > 0)
    expect(await count('petstore_clients_gone_total')).to.equal(1)
  })

  it('reports the process on /metrics: CPU time, memory, event loop and garbage collection', async () => {
    const { adminUrl } = await startService()
    const text = (await send(adminUrl, '/metrics')).text
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_seconds',
      'nodejs_gc_duration_seconds',
    ]) {
      expect(text).to.match(new RegExp(`^# TYPE ${name} `, 'm'))
    }
  })
})

function logs(lines: readonly string[], message: string): boolean {
  return lines.some((line) => line.includes(`"msg":"${message}`))
}
