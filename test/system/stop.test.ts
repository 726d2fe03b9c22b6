import { once } from 'node:events'
import { statSync } from 'node:fs'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { expect } from 'chai'
import type { ServiceProcess } from '../support/process.js'
import { endProcesses, startService } from '../support/process.js'
import { until, within } from '../support/until.js'

/** Far below the SHUTDOWN_TIMEOUT_MS of the tests that use it: nothing was waited for that long. */
const SOON_MS = 4_000
/** The size of the largest file of the docs page in the build. */
const scalarBytes = statSync(new URL('../../src/adapters/http/openapi/docs/scalar.js', import.meta.url)).size
const LONG_MS = '60000'

/** Keeps the only thread that works in the background busy for about a second from the signal on. */
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

describe('the service, told to stop', () => {
  const clients = new Set<{ destroy(): unknown }>()

  afterEach(async () => {
    for (const client of clients) client.destroy()
    clients.clear()
    await endProcesses()
  })

  it('tells clients during DRAIN_DELAY_MS not to use their connections again', async () => {
    const service = await startService({ DRAIN_DELAY_MS: '1500' })
    expect((await fetch(`${service.url}/livez`)).headers.get('connection')).to.equal('keep-alive')
    service.signal('SIGTERM')
    await until('/readyz says 503', async () => (await service.send('/readyz')).status === 503)
    expect((await fetch(`${service.url}/livez`)).headers.get('connection')).to.equal('close')
    const socket = await openSocket(service.url)
    socket.write('GET /livez HTTP/1.1\r\nHost: pets\r\n\r\n')
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    expect(bytes.toString(), 'on a new connection').to.include('\r\nConnection: close\r\n')
    expect(await service.ended).to.include({ exitCode: 0, stderr: '' })
  })

  it('is no longer ready during DRAIN_DELAY_MS, and serves on until that is over', async () => {
    const service = await startService({ DRAIN_DELAY_MS: '1500' })
    const signalledMs = performance.now()
    service.signal('SIGTERM')
    await until('/readyz says 503', async () => (await service.send('/readyz')).status === 503)

    expect((await service.send('/v1/pets', { key: service.keys.free })).status).to.equal(200)
    expect((await service.send('/livez')).status).to.equal(200)
    const health = await fetch(`${service.adminUrl}/health`)
    expect(health.status).to.equal(503)
    expect(await health.json()).to.include({ status: 'failing', ready: false })

    expect(await service.ended).to.include({ exitCode: 0, stderr: '' })
    expect(performance.now() - signalledMs).to.be.at.least(1_490)
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`by ${signal}, answers a request in progress before it exits with 0`, async () => {
      const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS })
      const pet = await halfSentPet(service)
      service.signal(signal)
      await until('new connections are refused', () => refusesConnections(service))

      pet.finish()
      expect(await pet.status).to.equal(201)
      const { exitCode } = await within(SOON_MS, 'the service ends behind its last answer', service.ended)
      expect(exitCode).to.equal(0)
    })
  }

  for (const port of ['url', 'adminUrl'] as const) {
    it(`does not wait for connections that are kept alive between requests: ${port}`, async () => {
      const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS })
      const agent = keptAliveAgent()
      await get(service[port], agent)
      expect(Object.values(agent.freeSockets).flat()).to.have.length(1)

      service.signal('SIGTERM')
      const { exitCode } = await within(SOON_MS, 'the service ends', service.ended)
      expect(exitCode).to.equal(0)
    })
  }

  for (const port of ['url', 'adminUrl'] as const) {
    it(`does not wait for connections on which nothing was ever sent, as browsers open them beforehand: ${port}`, async () => {
      const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS })
      await openSocket(service[port])
      // Connections are accepted in order: with this one answered, the silent one before it is known to the service.
      await fetch(`${service[port]}/health`)

      service.signal('SIGTERM')
      const { exitCode } = await within(SOON_MS, 'the service ends', service.ended)
      expect(exitCode).to.equal(0)
    })
  }

  for (const port of ['url', 'adminUrl'] as const) {
    it(`closes a connection with an incomplete request head: ${port}`, async () => {
      const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS })
      const socket = await openSocket(service[port])
      socket.write('GET /livez HT')
      await fetch(`${service[port]}/health`)

      service.signal('SIGTERM')
      const { exitCode } = await within(SOON_MS, 'the service ends', service.ended)
      expect(exitCode).to.equal(0)
    })
  }

  it('closes a connection with an incomplete request body', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS })
    const pet = await halfSentPet(service)
    service.signal('SIGTERM')
    const { exitCode } = await within(SOON_MS, 'the service ends', service.ended)
    expect(exitCode).to.equal(0)
    expect(await pet.status).to.equal('no answer')
  })

  it('serves one more request on an idle connection, because a load balancer may just have sent it', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS })
    const socket = await openSocket(service.url)
    socket.write('GET /livez HTTP/1.1\r\nHost: pets\r\n\r\n')
    await once(socket, 'data')
    service.signal('SIGTERM')
    await until('new connections are refused', () => refusesConnections(service))

    socket.write(`GET /v1/pets HTTP/1.1\r\nHost: pets\r\nAuthorization: Bearer ${service.keys.free}\r\n\r\n`)
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    expect(bytes.toString()).to.match(/^HTTP\/1\.1 200 OK\r\n/)
    expect(bytes.toString()).to.include('\r\nConnection: close\r\n')
    expect(await service.ended).to.include({ exitCode: 0 })
  })

  it('after an uncaught exception finishes requests in flight, closes idle connections at once, and exits with 1', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: LONG_MS, DRAIN_DELAY_MS: '30000', ...CRASH_ON_SIGUSR2 })
    const idle = await openSocket(service.url)
    const idleClosed = once(idle.resume(), 'end')
    // More than the buffers of the operating system can take while the client does not read.
    const reader = await openSocket(service.url)
    reader.pause().write('GET /docs/scalar.js HTTP/1.1\r\nHost: pets\r\n\r\n'.repeat(20))
    await fetch(`${service.url}/livez`)
    service.signal('SIGUSR2')
    await within(SOON_MS, 'the idle connection is closed', idleClosed)
    // A second exception must not cut the request either.
    service.signal('SIGUSR2')
    await until('both exceptions are logged', () => service.logLines.filter((line) => line.includes('planted')).length === 2)
    expect(await receivedBytes(reader)).to.be.above(20 * scalarBytes)
    const { exitCode } = await within(SOON_MS, 'the service ends', service.ended)
    expect(exitCode).to.equal(1)
    const last = service.logLines.slice(-4).map((line) => JSON.parse(line) as { level: number; msg: string })
    expect(last.map(({ msg }) => msg)).to.deep.equal(['uncaught exception', 'stopping', 'uncaught exception', 'stopped'])
    expect(last[0]?.level).to.equal(60)
  })

  it('cuts a request that never finishes after SHUTDOWN_TIMEOUT_MS', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: '700' })
    const pet = await halfSentPet(service)
    const signalledMs = performance.now()
    service.signal('SIGTERM')

    const { exitCode } = await within(SOON_MS, 'the service ends', service.ended)
    expect(exitCode).to.equal(0)
    expect(performance.now() - signalledMs).to.be.at.least(690)
    expect(await pet.status).to.equal('no answer')
  })

  it('cuts a response that the client does not read after SHUTDOWN_TIMEOUT_MS', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: '1500' })
    const reader = await openSocket(service.url)
    reader.pause().write('GET /docs/scalar.js HTTP/1.1\r\nHost: pets\r\n\r\n'.repeat(20))
    await fetch(`${service.url}/livez`)
    const signalledMs = performance.now()
    service.signal('SIGTERM')
    const { exitCode } = await within(SOON_MS, 'the service ends', service.ended)
    expect(exitCode).to.equal(0)
    expect(performance.now() - signalledMs).to.be.at.least(1_490)
  })

  it('waits for SHUTDOWN_TIMEOUT_MS in all, the drain delay included', async () => {
    const service = await startService({ DRAIN_DELAY_MS: '1500', SHUTDOWN_TIMEOUT_MS: '2000' })
    await halfSentPet(service)
    service.signal('SIGTERM')
    const { exitCode } = await within(3_000, 'the service ends', service.ended)
    expect(exitCode).to.equal(0)
  })

  it('does not wait longer for a client that keeps a refused CONNECT open', async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT_MS: '700' })
    const socket = await openSocket(service.url)
    socket.write('CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n')
    await once(socket, 'data')

    service.signal('SIGTERM')
    const { exitCode } = await within(SOON_MS, 'the service ends', service.ended)
    expect(exitCode).to.equal(0)
  })

  it('exits at once and with a failure at the second signal', async () => {
    const service = await startService({ DRAIN_DELAY_MS: '30000', SHUTDOWN_TIMEOUT_MS: LONG_MS })
    service.signal('SIGTERM')
    await until('/readyz says 503', async () => (await service.send('/readyz')).status === 503)

    service.signal('SIGINT')
    const { exitCode } = await within(SOON_MS, 'the service ends', service.ended)
    expect(exitCode).to.equal(1)
  })

  it('logs to the last line, in order, however busy it is', async () => {
    const service = await startService(BUSY_AT_STOP)
    expect(await service.stop()).to.equal(0)
    expect(service.logLines.slice(-2).map((line) => (JSON.parse(line) as { msg: string }).msg)).to.deep.equal(['stopping', 'stopped'])
  })

  it('stops although whoever read its output is gone', async () => {
    const service = await startService(BUSY_AT_STOP)
    service.closeOutput()
    service.signal('SIGTERM')
    const { exitCode } = await within(SOON_MS, 'the service ends', service.ended)
    expect(exitCode).to.equal(0)
  })

  function keptAliveAgent(): Agent {
    const agent = new Agent({ keepAlive: true })
    clients.add(agent)
    return agent
  }

  /** A connection that this side leaves open, whatever the other side does. */
  async function openSocket(url: string): Promise<Socket> {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    clients.add(socket)
    await once(socket, 'connect')
    socket.on('error', () => socket.destroy())
    return socket
  }

  /** A POST that the service has begun to read, and that lacks its last byte until `finish`. */
  async function halfSentPet({ url, keys }: ServiceProcess): Promise<{ finish(): void; status: Promise<number | 'no answer'> }> {
    const body = JSON.stringify({ name: 'Slowpoke', categoryId: 7 })
    const headers = {
      authorization: `Bearer ${keys.free}`,
      'content-type': 'application/json',
      'content-length': body.length,
      expect: '100-continue',
    }
    const outgoing = request(`${url}/v1/pets`, { method: 'POST', agent: keptAliveAgent(), headers })
    const status = new Promise<number | 'no answer'>((resolve) => {
      outgoing.on('response', (incoming) => resolve(incoming.resume().statusCode ?? 0))
      outgoing.on('error', () => resolve('no answer'))
    })
    outgoing.flushHeaders()
    await once(outgoing, 'continue')
    outgoing.write(body.slice(0, -1))
    return { finish: () => outgoing.end(body.slice(-1)), status }
  }
})

/** One request, of whatever status, whose answer is read to its end. */
async function get(url: string, agent: Agent): Promise<void> {
  const [incoming] = (await once(request(`${url}/`, { agent }).end(), 'response')) as [NodeJS.ReadableStream]
  await once(incoming.resume(), 'close')
}

/** The number of bytes until the service ends the connection. */
async function receivedBytes(socket: Socket): Promise<number> {
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
