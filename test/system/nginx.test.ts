import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { createServer } from 'node:http'
import { get } from 'node:https'
import { expect } from 'chai'
import { ERROR_CATALOGUE } from '../../src/adapters/http/errors/error-catalogue.js'
import { listen } from '../../src/adapters/http/server/server.js'
import { BODY_LIMIT_BYTES } from '../../src/adapters/http/server/limits.js'
import type { Sent, TestResponse } from '../support/api.js'
import { send } from '../support/api.js'
import type { Nginx } from '../support/nginx.js'
import { startNginx } from '../support/nginx.js'
import type { ServiceProcess } from '../support/process.js'
import { endProcesses, startService } from '../support/process.js'
import { exchangeOnce, head } from '../support/raw-socket.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import { until } from '../support/until.js'

const JSON_POST = { method: 'POST', headers: { 'content-type': 'application/json' } }
const REX = { method: 'POST', body: { name: 'Rex', categoryId: 7 } }
/** More than one request per connection that nginx keeps open. */
const MANY = 20

describe('nginx with config/nginx.conf', function () {
  this.timeout(30_000)
  let service: ServiceProcess
  let nginx: Nginx
  const stubs = new Set<Server>()

  before(async function () {
    service = await startService({ TRUSTED_PROXY_HOPS: '1' })
    nginx = await startNginx(this, [service.url])
  })
  afterEach(async () => {
    for (const stub of stubs) stub.close().closeAllConnections()
    stubs.clear()
    await nginx.reload([service.url])
  })
  after(async () => {
    await nginx?.stop()
    await endProcesses()
  })

  const call = (path: string, sent: Sent = {}) => send(nginx.url, path, sent)

  /** Starts a replica with this behavior. */
  async function startStub(listener: RequestListener): Promise<string> {
    const stub = createServer(listener)
    stubs.add(stub)
    return listen(stub, '127.0.0.1', 0)
  }

  /** Checks an error that nginx itself returned. */
  async function expectOwnError(response: Pick<TestResponse, 'status' | 'headers' | 'text'>, status: number, code: string): Promise<void> {
    const message = expectError(response, status, code)
    const known = (ERROR_CATALOGUE as Readonly<Record<string, { message: string }>>)[code]
    if (known) expect(message).to.equal(known.message)
    expect(response.headers['x-request-id'])
      .to.be.a('string')
      .that.matches(/^[0-9a-f]{32}$/)
    expect(response.headers).to.include({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
    expect(response.headers, 'returned by the service').to.not.have.property('x-ratelimit-limit')
    const isLogged = () => nginx.accessLog.some((line) => line.requestId === response.headers['x-request-id'] && line.status === status)
    await until('the access log has its request ID', isLogged)
  }

  describe('returns its own errors as JSON with a request ID:', () => {
    it('413 for a body larger than the limit of the service, and the service gets a body of exactly that size', async () => {
      const largest = `{"name":"${'x'.repeat(BODY_LIMIT_BYTES - 11)}"}`
      const accepted = await call('/v1/pets', { ...JSON_POST, key: service.keys.free, body: largest })
      expectError(accepted, 400, 'validation_failed')
      expect(readQuotaHeaders(accepted).limit).to.equal(60)
      await expectOwnError(await call('/v1/pets', { ...JSON_POST, key: service.keys.free, body: `${largest} ` }), 413, 'payload_too_large')
    })

    it('502 if no replica can be reached', async () => {
      const url = await startStub(() => undefined)
      for (const stub of stubs) stub.close()
      await nginx.reload([url])
      for (const method of ['GET', 'POST']) await expectOwnError(await call('/v1/pets', { method }), 502, 'bad_gateway')
    })

    it('504 if a replica does not respond', async () => {
      await nginx.reload([await startStub(() => undefined)])
      await expectOwnError(await call('/v1/pets', REX), 504, 'gateway_timeout')
    })

    const tooLong = 'x'.repeat(9_000)
    for (const [what, bytes, status, code] of [
      ['400 for what is not HTTP', 'garbage\r\n\r\n', 400, 'bad_request'],
      ['400 for a missing Host', head('GET /v1/pets HTTP/1.1'), 400, 'bad_request'],
      ['400 for TRACE', head('TRACE / HTTP/1.1', ['Host: pets']), 400, 'bad_request'],
      ['400 for CONNECT', head('CONNECT pets:80 HTTP/1.1', ['Host: pets:80']), 400, 'bad_request'],
      ['400 for an unknown version', head('GET / HTTP/3.0', ['Host: pets']), 400, 'bad_request'],
      ['400 for an unknown transfer coding', head('POST / HTTP/1.1', ['Host: pets', 'Transfer-Encoding: gzip']), 400, 'bad_request'],
      ['404 for its internal path of errors', head('GET /_error HTTP/1.1', ['Host: pets', 'Connection: close']), 404, 'not_found'],
      ['431 for a long URL', head(`GET /${tooLong} HTTP/1.1`, ['Host: pets']), 431, 'headers_too_large'],
      ['431 for a long header', head('GET / HTTP/1.1', ['Host: pets', `X-Long: ${tooLong}`]), 431, 'headers_too_large'],
    ] as const) {
      it(what, async () => expectOwnError(await exchangeOnce(nginx.url, bytes), status, code))
    }

    it('400 for a request without TLS on the port for HTTPS', async () => {
      const plain = head('GET /v1/pets HTTP/1.1', ['Host: localhost'])
      await expectOwnError(await exchangeOnce(nginx.tlsUrl.replace('https', 'http'), plain), 400, 'bad_request')
    })

    it('with codes that docs/api/errors.md lists', () => {
      const [, codes = ''] = /map \$status \$error_code {([^}]*)}/.exec(readFileSync('config/nginx.conf', 'utf8')) ?? []
      const listed = readFileSync('docs/api/errors.md', 'utf8')
      const pairs = [...codes.matchAll(/(\d{3}|default) (\w+);/g)].map(([, status = '', code = '']) => [status, code] as const)
      expect(pairs).to.have.length(7)
      for (const [status, code] of pairs) expect(listed).to.include(`| [\`${code}\`](#${code}) | ${status === 'default' ? 500 : status} |`)
    })
  })

  it('serves the API over HTTPS', async () => {
    const headers = { authorization: `Bearer ${service.keys.pro}` }
    const outgoing = get(`${nginx.tlsUrl}/v1/pets?limit=1`, { ca: readFileSync(nginx.authority.caFile), agent: false, headers })
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(incoming.resume().statusCode).to.equal(200)
    expect(incoming.headers).to.include({ 'x-ratelimit-limit': '300' })
  })

  it('passes the request ID of the client to the service, if the service would accept it, and otherwise its own', async () => {
    const received: string[] = []
    await nginx.reload([
      await startStub((request, response) => {
        received.push(String(request.headers['x-request-id']))
        response.end()
      }),
    ])
    const accepted = ['order-4711', 'A.b_c-9', 'x'.repeat(64)]
    const replaced = ['x'.repeat(65), 'two words', 'ü', `id-${service.keys.free}`, '']
    for (const id of [...accepted, ...replaced]) await call('/v1/pets', { headers: { 'x-request-id': id } })
    expect(received.slice(0, accepted.length)).to.deep.equal(accepted)
    for (const id of received.slice(accepted.length)) expect(id).to.match(/^[0-9a-f]{32}$/)
    await until('the access log has them', () => received.every((id) => nginx.accessLog.some(({ requestId }) => requestId === id)))
  })

  it('returns the same request ID as the service, once', async () => {
    const response = await call('/v1/pets', { headers: { 'x-request-id': 'order-4712' } })
    expectError(response, 401, 'missing_api_key')
    expect(response.headers['x-request-id']).to.equal('order-4712')
  })

  it('keeps clients from choosing the IP address that their failed authentications count toward', async () => {
    const locked = await startService({ TRUSTED_PROXY_HOPS: '1' })
    await nginx.reload([locked.url])
    const statuses: number[] = []
    for (let count = 0; count <= 30; count += 1) {
      const headers = { 'x-forwarded-for': `192.0.2.${count}`, forwarded: `for=192.0.2.${count}`, 'x-real-ip': `192.0.2.${count}` }
      statuses.push((await call('/v1/pets', { key: 'invalid', headers })).status)
    }
    expect(statuses).to.deep.equal([...Array.from({ length: 30 }, () => 401), 429])
  })

  it('does not forward requests to the admin port', async () => {
    const admin = new URL(service.adminUrl).host
    for (const path of ['/metrics', '/health', `${service.adminUrl}/metrics`, '//metrics', '/v1/../metrics']) {
      for (const host of ['localhost', admin]) {
        expect((await call(path, { key: service.keys.business, headers: { host } })).status, path).to.equal(404)
      }
    }
  })

  it('sends a GET or HEAD to another replica if the first one closes the connection, but not a POST that was sent', async () => {
    const lost: (string | undefined)[] = []
    const lossy = await startStub((request) => {
      lost.push(request.method)
      request.socket.destroy()
    })
    for (const [method, status] of [
      ['GET', 200],
      ['HEAD', 200],
      ['POST', 502],
    ] as const) {
      // New workers do not know about earlier failures.
      await nginx.reload([lossy, service.url])
      lost.length = 0
      const responses: TestResponse[] = []
      await until('the first replica has lost a request', async () => {
        responses.push(await call('/v1/pets', { ...(method === 'POST' ? REX : { method }), key: service.keys.enterprise }))
        return lost.length > 0
      })
      expect(responses.at(-1)?.status, method).to.equal(status)
      const triedTwice = () => nginx.accessLog.filter((line) => line.method === method && line.replicas.includes(', '))
      if (method !== 'POST') await until('the access log names both replicas', () => triedTwice().length === 1)
      expect(lost).to.deep.equal([method])
    }
  })

  it('sends every request to another replica if one refuses connections, even a POST', async () => {
    const killed = await startService()
    await nginx.reload([killed.url, service.url])
    const killedHost = new URL(killed.url).host
    await until('both replicas are used', async () => {
      await call('/v1/pets')
      return nginx.accessLog.at(-1)?.replicas === killedHost
    })
    await killed.stop('SIGKILL')
    for (let count = 0; count < MANY; count += 1) {
      const { status } = await call('/v1/pets', { ...(count % 2 === 0 ? REX : {}), key: service.keys.enterprise })
      expect(status).to.equal(count % 2 === 0 ? 201 : 200)
    }
  })

  it('closes idle connections to the replicas earlier than the service does', async () => {
    let connections = 0
    await nginx.reload([await startStub((_request, response) => response.end())])
    const [stub] = stubs
    stub?.on('connection', () => (connections += 1))
    for (let count = 0; count < MANY; count += 1) await call('/v1/pets')
    expect(connections, 'one per worker').to.be.below(MANY / 2)
    const countOpen = () => new Promise<number>((resolve) => stub?.getConnections((_error, count) => resolve(count)))
    await until('nginx has closed them', async () => (await countOpen()) === 0, 2_900)
  })
})
