import { once } from 'node:events'
import type { RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { expect } from 'chai'
import { pino } from 'pino'
import { announceClose, drain, listen, makeServer } from '../../src/adapters/http/server/server.js'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import { useApi, withApi } from '../support/api.js'
import { Gate } from '../support/gate.js'
import { HeldPetStore } from '../support/held-pet-store.js'
import type { RawResponse } from '../support/raw-socket.js'
import { MovableClock } from '../support/movable-clock.js'
import { countConnections, exchange, head } from '../support/raw-socket.js'
import { until } from '../support/until.js'

const REX = JSON.stringify({ name: 'Rex', categoryId: 7 })

describe('a connection', () => {
  const api = useApi()
  const sockets = new Set<Socket>()
  const auth = () => `Authorization: Bearer ${api.key}`

  afterEach(() => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  })

  function open(url: string, bytes: string): Socket {
    const { hostname, port } = new URL(url)
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true }, () => socket.write(bytes))
    // Socket errors of the client are expected and irrelevant.
    socket.on('error', () => socket.destroy())
    sockets.add(socket)
    return socket
  }

  const post = (fields: readonly string[] = [`Content-Length: ${REX.length}`], body = REX) =>
    head('POST /v1/pets HTTP/1.1', ['Host: pets', auth(), 'Content-Type: application/json', ...fields]) + body

  const unreadable: Readonly<Record<string, readonly [bytes: string, status: number]>> = {
    'stray bytes': ['garbage\r\n\r\n', 400],
    'a second request with a broken head': ['GET /v1/pets HTTP/1.1\r\nHost pets\r\n\r\n', 400],
    'a second request that is too large': [head('GET /v1/pets HTTP/1.1', ['Host: pets', `X-Long: ${'x'.repeat(9_000)}`]), 431],
  }

  for (const [what, [bytes, status]] of Object.entries(unreadable)) {
    for (const end of [false, true]) {
      const how = end ? ', even if the client closes its sending side' : ''
      it(`sends the response to a request before ${what} right after it get ${status} and the connection ends${how}`, async () => {
        const responses = await exchange(api.url, post() + bytes, { end })
        expect(responses.map((response) => response.status)).to.deep.equal([201, status])
        const [created, rejected] = responses as [RawResponse, RawResponse]
        expect(readQuotaHeaders(created).limit).to.equal(100_000)
        expect(rejected.headers['connection']).to.equal('close')
      })
    }
  }

  it('sends the responses to all pipelined requests in order before stray bytes after them get 400', async () => {
    const get = (limit: number) => head(`GET /v1/pets?limit=${limit} HTTP/1.1`, ['Host: pets', auth()])
    const responses = await exchange(api.url, `${get(1)}${post()}${get(2)}garbage\r\n\r\n`)
    expect(responses.map(({ status }) => status)).to.deep.equal([200, 201, 200, 400])
    expect((JSON.parse(responses[2]?.text ?? '') as unknown[]).length).to.equal(2)
  })

  it('has one response to a request that is rejected early, even if its chunked body is broken', async () => {
    const rejected = head('POST /v1/pets HTTP/1.1', ['Host: pets', 'Transfer-Encoding: chunked'])
    const responses = await exchange(api.url, `${rejected}5\r\nabcde\r\n`, { afterFirst: 'zz\r\n' })
    expect(responses.map(({ status }) => status)).to.deep.equal([401])
  })

  for (const [what, fields, body] of [
    ['in broken chunks', ['Transfer-Encoding: chunked'], '5\r\n{"nam\r\nzz\r\n'],
    ['that ends early', ['Content-Length: 500'], '{"name":'],
  ] as const) {
    it(`has one response to a request with a body ${what}: 400, with the quota headers of the key`, async () => {
      const responses = await exchange(api.url, post(fields, body), { end: what === 'that ends early' })
      expect(responses).to.have.length(1)
      const [response] = responses as [RawResponse]
      expectError(response, 400, 'bad_request')
      expect(readQuotaHeaders(response).limit).to.equal(100_000)
      expect(response.headers['connection']).to.equal('close')
    })
  }

  it('has one response to a request whose body breaks before the service reads it', async () => {
    const quotas = new HeldQuotaStore(new MovableClock())
    await withApi({ doubles: { quotas } }, async (own, key) => {
      const fields = ['Host: pets', `Authorization: Bearer ${key}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked']
      const responses = exchange(own.url, `${head('POST /v1/pets HTTP/1.1', fields)}zz\r\n`)
      await until('the request waits for its verdict', () => quotas.gate.heldCount === 1)
      quotas.gate.open()
      expect((await responses).map(({ status, headers }) => [status, headers['connection']])).to.deep.equal([[400, 'close']])
    })
  })

  it('announces its end on a response whose handler does not read the broken body', async () => {
    const pets = new HeldPetStore()
    await withApi({ doubles: { pets } }, async (own, key) => {
      const fields = ['Host: pets', `Authorization: Bearer ${key}`, 'Transfer-Encoding: chunked']
      const responses = exchange(own.url, `${head('GET /v1/pets HTTP/1.1', fields)}zz\r\n`)
      await until('the request is in flight', () => pets.gate.heldCount === 1)
      pets.gate.open()
      expect((await responses).map(({ status, headers }) => [status, headers['connection']])).to.deep.equal([[200, 'close']])
    })
  })

  it('is not reset while a client that keeps sending after stray bytes reads the 400', async () => {
    const socket = open(api.url, 'garbage\r\n\r\n')
    let resets = 0
    socket.on('error', () => (resets += 1))
    await once(socket, 'data')
    for (let chunk = 0; chunk < 20 && socket.writable; chunk += 1) {
      socket.write('x'.repeat(10_000))
      await new Promise((resolve) => setImmediate(resolve))
    }
    socket.end()
    await waitForClose(socket)
    expect(resets).to.equal(0)
  })

  it('sends the response to a client that closes its sending side after a complete request', async () => {
    const pets = new HeldPetStore()
    await withApi({ doubles: { pets } }, async (own, key) => {
      const bytes = head('GET /v1/pets HTTP/1.1', ['Host: pets', `Authorization: Bearer ${key}`])
      const responses = exchange(own.url, bytes, { end: true })
      await until('the request is in flight', () => pets.gate.heldCount === 1)
      // After one more round trip, the server has also seen the end of the other connection.
      await own.send('/livez')
      pets.gate.open()
      expect((await responses).map(({ status }) => status)).to.deep.equal([200])
    })
  })

  it('is closed by CONNECT while a response is unfinished, without an effect on other connections', async () => {
    const get = head('GET /livez HTTP/1.1', ['Host: pets'])
    for (const before of [get, get + get, post(), post() + get]) {
      const socket = open(api.url, `${before}CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`)
      await waitForClose(socket)
      expect((await api.send('/livez')).status).to.equal(200)
    }
  })

  it('can be reset right after CONNECT without an effect on the service', async () => {
    for (let attempt = 0; attempt < 50; attempt += 1) {
      const socket = open(api.url, 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n')
      await once(socket, 'connect')
      setImmediate(() => socket.resetAndDestroy())
      await waitForClose(socket)
    }
    expect((await api.send('/livez')).status).to.equal(200)
  })

  it('is not upgraded, and closes after the response to an upgrade request', async () => {
    const get = head('GET /v1/pets?limit=1 HTTP/1.1', ['Host: pets', auth()])
    const upgrade = head('GET /v1/pets?limit=2 HTTP/1.1', ['Host: pets', auth(), 'Connection: Upgrade', 'Upgrade: websocket'])
    for (const bytes of [get + upgrade, get + upgrade + get]) {
      const responses = await exchange(api.url, bytes)
      expect(responses.map(({ status, headers }) => [status, headers['connection']])).to.deep.equal([
        [200, 'keep-alive'],
        [200, 'close'],
      ])
    }
  })

  it('that the client resets during a request causes no error in the log', async () => {
    const halves = [post(['Content-Length: 500'], '{'), post().slice(0, -1), post(), 'GET /v1/pe']
    const before = api.logLines.length
    for (const [attempt, bytes] of Array.from({ length: 20 }, () => halves)
      .flat()
      .entries()) {
      const socket = open(api.url, bytes)
      await once(socket, 'connect')
      setTimeout(() => socket.resetAndDestroy(), attempt % 5)
      await waitForClose(socket)
    }
    await until('the connections are closed', async () => (await countConnections(api.server)) === 0)
    expect(api.logLines.slice(before).filter(({ level }) => Number(level) > 30)).to.be.empty
  })

  it('is closed when the client pipelines more than 32 requests', async () => {
    const get = head('GET /livez HTTP/1.1', ['Host: pets'])
    const last = head('GET /livez HTTP/1.1', ['Host: pets', 'Connection: close'])
    expect(await exchange(api.url, get.repeat(31) + last)).to.have.length(32)
    expect(await exchange(api.url, get.repeat(32) + last).catch(() => [])).to.have.length.below(33)
  })

  describe('to a server with other limits or listeners', () => {
    const servers = new Set<Server>()

    async function serve(listener: RequestListener = () => undefined, options: Partial<Parameters<typeof makeServer>[1]> = {}) {
      const server = makeServer(listener, { log: pino({ level: 'silent' }), ...options })
      servers.add(server)
      return { server, url: await listen(server, '127.0.0.1', 0) }
    }
    afterEach(() => {
      for (const server of servers) {
        server.closeAllConnections()
        server.close()
      }
      servers.clear()
    })

    it('sends Strict-Transport-Security with the response to stray bytes only if PUBLIC_URL is https', async () => {
      for (const [publicUrl, expected] of [
        ['https://pets.example', 'max-age=31536000'],
        ['http://pets.example', undefined],
      ] as const) {
        const { url } = await serve(undefined, { publicUrl })
        const [rejected] = await exchange(url, 'garbage\r\n\r\n')
        expect(rejected?.headers['strict-transport-security']).to.equal(expected)
      }
    })

    it('is read for a while after a 400, so that a client that is still sending receives the response', async () => {
      const { server, url } = await serve()
      const accepted = once(server, 'connection') as Promise<[Socket]>
      // A client that does not react to the end of the server's side.
      const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
      sockets.add(socket)
      socket.write('garbage\r\n\r\n')
      const [serverSide] = await accepted
      const [response] = (await once(socket, 'data')) as [Buffer]
      expect(response.toString()).to.match(/^HTTP\/1\.1 400 /)
      const before = serverSide.bytesRead
      socket.write('more')
      await until('the server has read more', () => serverSide.bytesRead > before)
      expect(serverSide.destroyed).to.equal(false)
    })

    it('keeps its IP address after the client has reset it, so that the failure limit counts that IP address', async () => {
      const { server, url } = await serve()
      const accepted = once(server, 'connection') as Promise<[Socket]>
      const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' })
      const [serverSide] = await accepted
      socket.resetAndDestroy()
      await until('the server has noticed', () => serverSide.destroyed)
      expect(serverSide.remoteAddress).to.equal('127.0.0.1')
    })

    it('gets all responses to pipelined requests when the server is about to stop, and only the last response announces the end', async () => {
      const { server, url } = await serve((_request, response) => {
        announceClose(server)
        setImmediate(() => response.end())
      })
      const responses = await exchange(url, head('GET / HTTP/1.1', ['Host: pets']).repeat(3))
      expect(responses.map(({ headers }) => headers['connection'])).to.deep.equal(['keep-alive', 'keep-alive', 'close'])
    })

    it('has the responses to all pipelined requests before stray bytes get 400, although the last one is late', async () => {
      let first: ServerResponse | undefined
      const { url } = await serve((_request, response) => {
        if (first) first.once('close', () => setImmediate(() => response.end('last')))
        else setImmediate(() => response.end('first'))
        first ??= response
      })
      const responses = await exchange(url, `${head('GET / HTTP/1.1', ['Host: pets']).repeat(2)}garbage\r\n\r\n`)
      expect(responses.map(({ status }) => status)).to.deep.equal([200, 200, 400])
    })

    it('does not execute a request after a response that has announced the end of the connection', async () => {
      const paths: (string | undefined)[] = []
      const { url } = await serve(({ url: path }, response) => {
        paths.push(path)
        response.shouldKeepAlive = false
        response.end()
      })
      await exchange(url, head('GET /first HTTP/1.1', ['Host: pets']) + head('GET /second HTTP/1.1', ['Host: pets']))
      expect(paths).to.deep.equal(['/first'])
    })

    it('is not closed by draining before a complete request has its response, even if half a request follows', async () => {
      const waiting: (() => void)[] = []
      const { server, url } = await serve((_request, response) => void waiting.push(() => response.end()))
      const half = head('POST / HTTP/1.1', ['Host: pets', 'Content-Length: 2']) + '{'
      const responses = exchange(url, head('GET / HTTP/1.1', ['Host: pets']) + half)
      await until('both requests are known', () => waiting.length === 2)
      const idle = open(url, '')
      await until('the idle connection is open', async () => (await countConnections(server)) === 2)
      const drained = drain(server, { graceMs: 0, timeoutMs: 5_000 })
      await waitForClose(idle)
      waiting[0]?.()
      expect((await responses).map(({ status }) => status)).to.deep.equal([200])
      await drained
    })

    it('leaves no timer behind when draining has closed it', async () => {
      const { server, url } = await serve()
      await waitForClose(open(url, 'garbage\r\n\r\n').end())
      const countTimers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length
      const before = countTimers()
      await drain(server, { graceMs: 0, timeoutMs: 1_000 })
      expect(countTimers()).to.be.at.most(before)
    })

    it('is closed when nothing can be written for 30 s because the client does not read', async () => {
      const written = Buffer.alloc(50_000_000)
      let gone = 0
      const { server, url } = await serve((_request, response) => void response.end(written), { onClientGone: () => (gone += 1) })
      expect(server.timeout).to.equal(30_000)
      server.timeout = 100
      open(url, 'GET / HTTP/1.1\r\nHost: pets\r\n\r\n').pause()
      await until('the client is connected', async () => (await countConnections(server)) === 1)
      await until('the server has closed the connection', async () => (await countConnections(server)) === 0)
      await until('the client is counted as gone', () => gone === 1)
    })

    it('is closed on arrival if the limit is reached, and earlier connections are still served', async () => {
      let dropped = 0
      const options = { maxConnections: 2, onConnectionDropped: () => (dropped += 1) }
      const { url } = await serve((_request, response) => void response.end('served'), options)
      const first = open(url, '')
      const second = open(url, '')
      await Promise.all([once(first, 'connect'), once(second, 'connect')])
      const third = open(url, 'GET / HTTP/1.1\r\nHost: pets\r\n\r\n')
      await waitForClose(third)
      expect(dropped).to.equal(1)
      for (const socket of [first, second]) {
        socket.write('GET / HTTP/1.1\r\nHost: pets\r\n\r\n')
        const [bytes] = (await once(socket, 'data')) as [Buffer]
        expect(bytes.toString()).to.match(/^HTTP\/1\.1 200 OK\r\n/)
      }
    })
  })
})

describe('requests beyond MAX_IN_FLIGHT', () => {
  it('get 503 with Retry-After at once, without a charge, and are counted, and health checks still succeed', async () => {
    const pets = new HeldPetStore()
    await withApi({ doubles: { pets }, config: { maxInFlight: 2 } }, async (api) => {
      const { secret: key } = await api.issueKey('free')
      const held = [api.send('/v1/pets', { key }), api.send('/v1/pets', { key })]
      await until('both are in flight', () => pets.gate.heldCount === 2)

      const rejected = await api.send('/v1/pets', { key })
      expectError(rejected, 503, 'service_unavailable')
      expect(rejected.headers['retry-after']).to.equal('1')
      const metrics = await api.parts.metrics.registry.metrics()
      expect(metrics).to.include('petstore_requests_in_flight 2\n').and.include('petstore_overload_rejections_total 1\n')
      expect(readQuotaHeaders(rejected).limit).to.equal(30)
      expect((await api.send('/livez')).status).to.equal(200)

      pets.gate.open()
      expect((await Promise.all(held)).map(({ status }) => status)).to.deep.equal([200, 200])
      expect(readQuotaHeaders(await api.send('/v1/pets', { key })).remaining).to.equal(57)
    })
  })
})

/** Resolves when the connection is closed or reset. */
async function waitForClose(socket: Socket): Promise<void> {
  socket.once('end', () => socket.end())
  await new Promise((resolve) => socket.resume().once('close', resolve))
}

class HeldQuotaStore extends MemoryQuotaStore {
  readonly gate = new Gate()

  override async take(...args: Parameters<MemoryQuotaStore['take']>): ReturnType<MemoryQuotaStore['take']> {
    await this.gate.pass()
    return super.take(...args)
  }
}
