import { once } from 'node:events'
import { statSync } from 'node:fs'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { expect } from 'chai'
import type { ServiceProcess } from '../support/process.js'
import { endProcesses, startService } from '../support/process.js'
import { until, within } from '../support/until.js'

/** Far below LONG_MS, so that a service that waits for its timeout fails the test. */
const SOON_MS = 8_000
/** The size of the largest file of the docs page in the build. */
const scalarBytes = statSync(new URL('../../src/adapters/http/openapi/docs/scalar.js', import.meta.url)).size
const LONG_MS = '60000'

/** Keeps the only background thread busy for about a second after the signal. */
const BUSY_SCRIPT = [
  "import { pbkdf2 } from 'node:crypto'",
  "process.on('SIGTERM', () => pbkdf2('a', 'b', 1_000_000, 64, 'sha512', () => {}))",
]
const BUSY_AT_STOP = {
  UV_THREADPOOL_SIZE: '1',
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(BUSY_SCRIPT.join('\n'))}`,
}

/** Throws outside every request handler. */
const CRASH_SCRIPT = "process.on('SIGUSR2', () => { throw new Error('planted') })"
const CRASH_ON_SIGUSR2 = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(CRASH_SCRIPT)}` }

describe('a service that receives a signal to stop', () => {
  const clients = new Set<{ destroy(): unknown }>()

  afterEach(async () => {
    for (const client of clients) client.destroy()
    clients.clear()
    await endProcesses()
  })

  async function expectEnd(service: ServiceProcess, exitCode: number, withinMs = SOON_MS): Promise<void> {
    expect(await within(withinMs, 'the service ends', service.ended)).to.include({ exitCode })
  }

  const becomesUnready = (service: ServiceProcess) =>
    until('/readyz returns 503', async () => (await service.send('/readyz')).status === 503)

  it('is no longer ready during DRAIN_DELAY_MS, but still serves requests and asks clients to close the connections that were open', async () => {
    const service = await startService({ DRAIN_DELAY_MS: '1500' })
    expect((await fetch(`${service.url}/livez`)).headers.get('connection')).to.equal('keep-alive')
    const signalledMs = performance.now()
    service.signal('SIGTERM')
    await becomesUnready(service)

    expect((await service.send('/v1/pets', { key: service.keys.free })).status).to.equal(200)
    expect((await fetch(`${service.url}/livez`)).headers.get('connection')).to.equal('close')
    expect(await sendOn(await openSocket(service.url), '/livez'), 'on a new connection').to.include('\r\nConnection: keep-alive\r\n')
    const health = await fetch(`${service.adminUrl}/health`)
    expect(health.status).to.equal(503)
    expect(await health.json()).to.include({ status: 'failing', ready: false })

    expect(await service.ended).to.include({ exitCode: 0, stderr: service.notice })
    expect(performance.now() - signalledMs).to.be.at.least(1_490)
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`by ${signal}, responds to a request in flight before it exits with 0`, async () => {
      const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS })
      const pet = await sendIncompletePost(service)
      service.signal(signal)
      await until('new connections are refused', () => refusesConnections(service))

      pet.finish()
      expect(await pet.status).to.equal(201)
      await expectEnd(service, 0)
    })
  }

  it('closes connections without a complete request on both ports: idle, unused, with half a head or half a body', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS })
    for (const url of [service.url, service.adminUrl]) {
      await sendOn(await openSocket(url), '/health')
      await openSocket(url)
      const half = await openSocket(url)
      half.write('GET /livez HT')
      // Connections are accepted in order, so the service knows the ones above when it responds on a new one.
      await fetch(`${url}/health`)
    }
    const pet = await sendIncompletePost(service)
    service.signal('SIGTERM')
    await expectEnd(service, 0)
    expect(await pet.status).to.equal('no response')
  })

  it('serves one more request on an idle connection, because a load balancer may just have sent it', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS })
    const socket = await openSocket(service.url)
    await sendOn(socket, '/livez')
    service.signal('SIGTERM')
    await until('new connections are refused', () => refusesConnections(service))

    const response = await sendOn(socket, '/v1/pets', service.keys.free)
    expect(response).to.match(/^HTTP\/1\.1 200 OK\r\n/)
    expect(response).to.include('\r\nConnection: close\r\n')
    expect(await service.ended).to.include({ exitCode: 0 })
  })

  it('after an uncaught exception finishes requests in flight, closes idle connections at once, and exits with 1', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS, DRAIN_DELAY_MS: '30000', ...CRASH_ON_SIGUSR2 })
    const idle = await openSocket(service.url)
    const idleClosed = once(idle.resume(), 'end')
    const reader = await requestWithoutReading(service)
    service.signal('SIGUSR2')
    await within(SOON_MS, 'the idle connection is closed', idleClosed)
    // A second exception must not abort the request either.
    service.signal('SIGUSR2')
    await until('both exceptions are logged', () => service.logLines.filter((line) => line.includes('planted')).length === 2)
    expect(await countBytes(reader)).to.be.above(20 * scalarBytes)
    await expectEnd(service, 1)
    const lines = service.logLines.map((line) => JSON.parse(line) as { level: number; msg: string })
    const last = lines.filter(({ msg }) => msg !== 'request').slice(-4)
    expect(last.map(({ msg }) => msg)).to.deep.equal(['uncaught exception', 'stopping', 'uncaught exception', 'stopped'])
    expect(last[0]?.level).to.equal(60)
  })

  it('waits for SHUTDOWN_TIMEOUT_MS, no longer, for a client that does not read its response', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: '1500' })
    await requestWithoutReading(service)
    const rejected = await openSocket(service.url)
    rejected.write('CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n')
    await once(rejected, 'data')
    const signalledMs = performance.now()
    service.signal('SIGTERM')
    await expectEnd(service, 0)
    expect(performance.now() - signalledMs).to.be.at.least(1_490)
  })

  it('includes the drain delay in SHUTDOWN_TIMEOUT_MS', async () => {
    const service = await startService({ DRAIN_DELAY_MS: '1500', SHUTDOWN_TIMEOUT_MS: '2000' })
    await requestWithoutReading(service)
    service.signal('SIGTERM')
    await expectEnd(service, 0, 3_000)
  })

  it('exits with 1 at once after a second signal', async () => {
    const service = await startService({ DRAIN_DELAY_MS: '30000', SHUTDOWN_TIMEOUT_MS: LONG_MS })
    service.signal('SIGTERM')
    await becomesUnready(service)
    service.signal('SIGINT')
    await expectEnd(service, 1)
  })

  it('writes all log lines, in order, even if it is busy', async () => {
    const service = await startService(BUSY_AT_STOP)
    expect(await service.stop()).to.equal(0)
    expect(service.logLines.slice(-2).map((line) => (JSON.parse(line) as { msg: string }).msg)).to.deep.equal(['stopping', 'stopped'])
  })

  it('stops even if the reader of its output has closed the pipe', async () => {
    const service = await startService(BUSY_AT_STOP)
    service.closeOutput()
    service.signal('SIGTERM')
    await expectEnd(service, 0)
  })

  /** Opens a connection that stays open when the service closes its side. */
  async function openSocket(url: string): Promise<Socket> {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    clients.add(socket)
    await once(socket, 'connect')
    socket.on('error', () => socket.destroy())
    return socket
  }

  /** Requests more than the buffers of the operating system can take, so that the responses stay unfinished. */
  async function requestWithoutReading({ url }: ServiceProcess): Promise<Socket> {
    const socket = await openSocket(url)
    socket.pause().write('GET /docs/scalar.js HTTP/1.1\r\nHost: pets\r\n\r\n'.repeat(20))
    await fetch(`${url}/livez`)
    return socket
  }

  /** Sends a POST without its last byte, which `finish` sends. The service is already reading it. */
  async function sendIncompletePost({ url, keys }: ServiceProcess): Promise<{ finish(): void; status: Promise<number | 'no response'> }> {
    const body = JSON.stringify({ name: 'Slowpoke', categoryId: 7 })
    const headers = {
      authorization: `Bearer ${keys.free}`,
      'content-type': 'application/json',
      'content-length': body.length,
      expect: '100-continue',
    }
    const agent = new Agent({ keepAlive: true })
    clients.add(agent)
    const outgoing = request(`${url}/v1/pets`, { method: 'POST', agent, headers })
    const status = new Promise<number | 'no response'>((resolve) => {
      outgoing.on('response', (incoming) => resolve(incoming.resume().statusCode ?? 0))
      outgoing.on('error', () => resolve('no response'))
    })
    outgoing.flushHeaders()
    await once(outgoing, 'continue')
    outgoing.write(body.slice(0, -1))
    return { finish: () => outgoing.end(body.slice(-1)), status }
  }
})

/** Sends a GET, and resolves to the first bytes of the response. */
async function sendOn(socket: Socket, path: string, key = ''): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: pets\r\nAuthorization: Bearer ${key}\r\n\r\n`)
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  return bytes.toString()
}

/** Counts the bytes until the service ends the connection. */
async function countBytes(socket: Socket): Promise<number> {
  let bytes = 0
  socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
  await once(socket.resume(), 'end')
  return bytes
}

async function refusesConnections({ url }: ServiceProcess): Promise<boolean> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  return new Promise((resolve) => {
    socket.on('connect', () => resolve(false))
    socket.on('error', () => resolve(true))
  }).finally(() => socket.destroy()) as Promise<boolean>
}
