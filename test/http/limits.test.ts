import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { mock } from 'node:test'
import { expect } from 'chai'
import type { Dependency } from '../../src/adapters/http/admin/health.js'
import { Health } from '../../src/adapters/http/admin/health.js'
import { MemoryFailedAuthentications } from '../../src/adapters/memory/memory-failed-authentications.js'
import { listen, makeServer } from '../../src/adapters/http/server/server.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { TestApi } from '../support/api.js'
import { send, startApi } from '../support/api.js'
import { MovableClock } from '../support/movable-clock.js'
import { exchangeOnce, exchange, head } from '../support/raw-socket.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import { issueAmpleKey, withApi } from '../support/api.js'

const REX = JSON.stringify({ name: 'Rex', categoryId: 7 })

/** A body may take this long to arrive. */
const BODY_TIMEOUT_MS = 15_000

describe('a request', () => {
  let api: TestApi
  let key: string

  before(async () => {
    api = await startApi()
    key = await issueAmpleKey(api)
  })
  after(() => api.stop())

  /** A POST on a connection that the client would keep open. */
  const post = (...fields: string[]) =>
    head('POST /v1/pets HTTP/1.1', ['Host: pets', `Authorization: Bearer ${key}`, 'Content-Type: application/json', ...fields])

  it('whose body does not arrive within 15 s gets 408, and its connection is closed', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const { hostname, port } = new URL(api.url)
    const socket = connect(Number(port), hostname)
    try {
      socket.write(post('Content-Length: 500', 'Expect: 100-continue'))
      // The server is about to read the body.
      await once(socket, 'data')
      socket.write('{"name":')
      const response = textUntilClosed(socket)
      mock.timers.tick(BODY_TIMEOUT_MS)
      const [headers = '', body = ''] = (await response).split('\r\n\r\n')
      expect(headers)
        .to.match(/^HTTP\/1\.1 408 /)
        .and.match(/^connection: close$/im)
        .and.match(/^x-ratelimit-limit: 100000$/im)
      expect(JSON.parse(body)).to.include({ code: 'request_timeout', status: 408 })
    } finally {
      mock.timers.reset()
      socket.destroy()
    }
  })

  for (const [what, framing] of [
    ['announces', ['Content-Length: 65537']],
    ['sends in chunks', ['Transfer-Encoding: chunked']],
  ] as const) {
    it(`that ${what} more than 64 KiB gets 413, and its connection is closed`, async () => {
      const chunk = framing[0].startsWith('T') ? `10001\r\n${' '.repeat(0x10001)}\r\n` : ''
      const next = head('GET /livez HTTP/1.1', ['Host: pets'])
      // The connection ends, so that no response to the next request arrives.
      const response = await exchangeOnce(api.url, post(...framing) + chunk + (chunk && `0\r\n\r\n${next}`))
      expectError(response, 413, 'payload_too_large')
      expect(response.headers).to.include({ connection: 'close' })
    })
  }

  for (const expectation of ['100-continue', '100-Continue', '100-CONTINUE']) {
    it(`with Expect: ${expectation} is asked for its body`, async () => {
      const fields = [`Content-Length: ${REX.length}`, `Expect: ${expectation}`, 'Connection: close']
      const responses = await exchange(api.url, post(...fields), { afterFirst: REX })
      expect(responses.map(({ status }) => status)).to.deep.equal([100, 201])
    })
  }

  for (const coding of ['chunked', 'Chunked', 'CHUNKED']) {
    it(`with Transfer-Encoding: ${coding} has its body read`, async () => {
      const chunk = `${REX.length.toString(16)}\r\n${REX}\r\n0\r\n\r\n`
      const response = await exchangeOnce(api.url, post(`Transfer-Encoding: ${coding}`, 'Connection: close') + chunk)
      expect(response.status).to.equal(201)
    })
  }

  it('may request JSON with a charset, in any letter case', async () => {
    for (const accept of ['application/json; charset=utf-8', 'application/json;Charset=UTF-8']) {
      expect((await api.send('/v1/pets', { key, headers: { accept } })).status, accept).to.equal(200)
    }
  })

  it('may reuse an idle connection for 75 s', async () => {
    const { hostname, port } = new URL(api.url)
    const socket = connect(Number(port), hostname)
    socket.write(head('GET /livez HTTP/1.1', ['Host: pets']))
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    expect(bytes.toString())
      .to.match(/^connection: keep-alive$/im)
      .and.match(/^keep-alive: timeout=75$/im)
  })
})

describe('the admin port', () => {
  const get = async ({ parts }: TestApi, path: string) => {
    const admin = makeServer(parts.adminApi, { log: parts.log })
    return send(await listen(admin, '127.0.0.1', 0), path).finally(() => admin.close())
  }

  it('responds to /health with 503 while a required dependency is down, even if the process is ready', () => {
    const down: Dependency = { name: 'mongodb', isRequired: true, isUp: async () => false }
    return withApi({ doubles: { health: new Health([down]) } }, async (api) => {
      api.parts.health.startAccepting()
      const { status, text } = await get(api, '/health')
      expect(status).to.equal(503)
      expect(JSON.parse(text)).to.deep.include({ status: 'failing', ready: true, dependencies: { mongodb: 'down' } })
    })
  })

  it('counts the requests of locked-out IP addresses on /metrics', () =>
    withApi({}, async (api) => {
      for (let failure = 0; failure < 30; failure += 1) await api.send('/v1/pets', { key: 'rubbish' })
      for (let request = 0; request < 3; request += 1) {
        expectError(await api.send('/v1/pets', { key: 'rubbish' }), 429, 'too_many_failed_authentications')
      }
      expect((await get(api, '/metrics')).text)
        .to.include('petstore_unauthenticated_requests_total{code="too_many_failed_authentications"} 3\n')
        .and.include('petstore_unauthenticated_requests_total{code="invalid_api_key"} 30\n')
    }))

  it('reports durations on /metrics in seconds and in the log in milliseconds', () =>
    withApi({}, async (api, key) => {
      await api.send('/v1/pets', { key })
      const [, seconds] = /^http_request_duration_seconds_sum\{.*\} (\S+)$/m.exec((await get(api, '/metrics')).text) ?? []
      const [line] = api.logLines.filter(({ msg }) => msg === 'request')
      expect(Number(seconds) * 1000).to.be.closeTo(Number(line?.['ms']), 0.06)
    }))
})

describe('the failure limit', () => {
  it('is that of the client behind a trusted proxy, including on OPTIONS and on errors without a key', () =>
    withApi({ config: { trustedProxyHops: 1 } }, async (api) => {
      const from = (client: string) => ({ headers: { 'x-forwarded-for': client } })
      for (let failure = 0; failure < 3; failure += 1) await api.send('/v1/pets', { key: 'rubbish', ...from('198.51.100.7') })
      for (const [path, method] of [
        ['/v1/pets', 'OPTIONS'],
        ['/nowhere', 'GET'],
        ['/v1/pets', 'GET'],
      ] as const) {
        expect(readQuotaHeaders(await api.send(path, { method, ...from('198.51.100.7') })).remaining, `${method} ${path}`).to.equal(27)
        expect(readQuotaHeaders(await api.send(path, { method, ...from('198.51.100.8') })).remaining, `${method} ${path}`).to.equal(30)
      }
    }))

  describe('if it cannot be read', () => {
    let api: TestApi
    let failures: UnreadableFailures

    beforeEach(async () => {
      failures = new UnreadableFailures(30, new MovableClock())
      api = await startApi({ doubles: { failedAuthentications: failures } })
    })
    afterEach(() => api.stop())

    for (const [what, error, status, code] of [
      ['an outage', new StoreUnavailable('unavailable'), 503, 'service_unavailable'],
      ['a bug', new TypeError('hunter2'), 500, 'internal_error'],
    ] as const) {
      it(`because of ${what}, does not replace the error body, and the log reports the missing headers`, async () => {
        failures.error = error
        const response = await api.send('/v1/pets')
        expectError(response, status, code)
        expect(response.text).to.not.include('hunter2')
        expect(response.headers).to.not.have.property('x-ratelimit-limit')
        expect(api.logLines.map(({ msg }) => msg)).to.include('failed to set the quota headers')
        expect(api.logLines.at(-1)).to.include({ msg: 'request', status, code })
      })
    }

    it('does not change errors outside the API', async () => {
      failures.error = new StoreUnavailable('unavailable')
      expectError(await api.send('/nowhere'), 404, 'not_found')
      expectError(await api.send('/livez', { method: 'DELETE' }), 405, 'method_not_allowed')
    })

    it('does not affect OPTIONS outside /v1, which does not depend on quotas', async () => {
      failures.error = new StoreUnavailable('unavailable')
      for (const path of ['/livez', '/readyz', '/docs', '/openapi.json', '*']) {
        const { status, headers } = await api.send(path, { method: 'OPTIONS' })
        expect({ path, status, quotas: 'x-ratelimit-limit' in headers }).to.deep.equal({ path, status: 204, quotas: false })
      }
      expect(failures.reads, 'reads of the failure limit').to.equal(0)
      failures.error = undefined
      expect(readQuotaHeaders(await api.send('/v1/pets', { method: 'OPTIONS' })).limit).to.equal(30)
    })
  })
})

/** The real store, which cannot be read while there is an `error`. */
class UnreadableFailures extends MemoryFailedAuthentications {
  error: Error | undefined
  reads = 0

  override async peek(address: string): ReturnType<MemoryFailedAuthentications['peek']> {
    this.reads += 1
    if (this.error) throw this.error
    return super.peek(address)
  }
}

async function textUntilClosed(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await once(socket, 'close')
  return text
}
