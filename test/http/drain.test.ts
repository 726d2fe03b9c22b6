import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { expect } from 'chai'
import { pino } from 'pino'
import { announceClose, drain, listen, makeServer } from '../../src/adapters/http/server/server.js'
import { exchange, head } from '../support/raw-socket.js'
import { until } from '../support/until.js'

const GET = head('GET / HTTP/1.1', ['Host: pets'])
const WAITING = 20

describe('a server that stops', () => {
  let server: Server
  let url: string
  const sockets = new Set<Socket>()

  beforeEach(async () => {
    server = makeServer((_request, response) => void response.end('served'), { log: pino({ level: 'silent' }) })
    url = await listen(server, '127.0.0.1', 0)
  })
  afterEach(() => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
    server.closeAllConnections()
    server.close()
  })

  it('serves a request on each connection that was waiting to be accepted when it begins to drain', async () => {
    const waiting = Array.from({ length: WAITING }, connectToServer)
    // Now the operating system has accepted the connections, and the event loop has not.
    await new Promise((resolve) => process.nextTick(resolve))
    const drained = drain(server, { graceMs: 5_000, timeoutMs: 5_000 })
    await until('the server no longer listens', () => !server.listening)
    for (const socket of waiting) expect(await request(socket)).to.match(/^HTTP\/1\.1 200 OK\r\n/)
    await drained
  })

  it('serves one more request on an idle connection within the grace period, and then closes the connection', async () => {
    const idle = await open()
    await request(idle)
    const drained = drain(server, { graceMs: 5_000, timeoutMs: 5_000 })
    const startMs = performance.now()
    await until('the server has had time to close it', () => performance.now() > startMs + 100)
    expect(await request(idle)).to.include('\r\nConnection: close\r\n')
    await drained
  })

  it('has drained as soon as the other side has closed the idle connections', async () => {
    const idle = await open()
    await request(idle)
    const startMs = performance.now()
    const drained = drain(server, { graceMs: 5_000, timeoutMs: 5_000 })
    idle.end()
    await drained
    expect(performance.now() - startMs).to.be.below(4_000)
  })

  it('asks clients to close open connections, but keeps those that are opened before it drains', async () => {
    const earlier = await open()
    await request(earlier)
    announceClose(server)
    expect(await request(earlier)).to.include('\r\nConnection: close\r\n')
    const later = await open()
    expect(await request(later)).to.include('\r\nConnection: keep-alive\r\n')

    const drained = drain(server, { graceMs: 5_000, timeoutMs: 5_000 })
    await until('the server no longer listens', () => !server.listening)
    expect(await request(later)).to.include('\r\nConnection: close\r\n')
    await drained
  })

  it('stops listening even if new connections keep arriving', async () => {
    let isStopped = false
    const client = async () => {
      while (!isStopped) await exchange(url, head('GET / HTTP/1.1', ['Host: pets', 'Connection: close'])).catch(() => undefined)
    }
    const clients = Array.from({ length: WAITING }, client)
    await until('the server is busy', async () => (await once(server, 'connection')).length > 0)
    await drain(server, { graceMs: 100, timeoutMs: 5_000 })
    isStopped = true
    await Promise.all(clients)
  })

  function connectToServer(): Socket {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    sockets.add(socket)
    return socket
  }

  async function open(): Promise<Socket> {
    const socket = connectToServer()
    await once(socket, 'connect')
    return socket
  }

  /** Sends a GET, and resolves to the first bytes of the response. */
  async function request(socket: Socket): Promise<string> {
    socket.write(GET)
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    return bytes.toString()
  }
})
