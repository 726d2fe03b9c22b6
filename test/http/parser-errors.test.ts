import { expect } from 'chai'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { listen, makeServer } from '../../src/adapters/http/server/server.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import { useApi } from '../support/api.js'
import type { Exchange, RawResponse } from '../support/raw-socket.js'
import { countConnections, exchange, exchangeOnce, head } from '../support/raw-socket.js'
import { until } from '../support/until.js'

const GET = 'GET /v1/pets HTTP/1.1'
const POST = 'POST /v1/pets HTTP/1.1'
const JSON_TYPE = 'Content-Type: application/json'

describe('a request that is not valid HTTP', () => {
  const api = useApi()

  const auth = () => `Authorization: Bearer ${api.key}`
  const send = (
    requestLine: string,
    fields: readonly string[] = ['Host: pets'],
    { body = '', ...options }: Exchange & { body?: string } = {},
  ) => exchangeOnce(api.url, head(requestLine, fields) + body, options)

  /** Checks the error body, the request ID, which must be in the log, and the end of the connection. */
  function expectRejection(response: RawResponse, status: number, code: string): void {
    expectError(response, status, code)
    expect(response.headers).to.include({ connection: 'close', 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
    expect(response.headers['x-request-id']).to.match(/^[0-9a-f-]{36}$/)
    expect(api.logLines.filter((line) => line['requestId'] === response.headers['x-request-id'])).to.have.length(1)
  }

  for (const requestLine of [
    'hello',
    'GET',
    `${GET} x`,
    'GET /v1 pets HTTP/1.1',
    'GET /v1/pets HTTP/7.1',
    'GET /v1/pets FTP/1.1',
    'G@T /v1/pets HTTP/1.1',
    '\u0016\u0003\u0001',
  ]) {
    it(`returns 400 for the request line ${JSON.stringify(requestLine)}`, async () => {
      expectRejection(await send(requestLine, ['Host: pets'], { end: true }), 400, 'bad_request')
    })
  }

  for (const field of ['Host pets', 'Accept : x', 'X-A: b\r\n c', 'X-A: \u0001', 'Content-Length: x', 'Content-Length: -1']) {
    it(`returns 400 for the field ${JSON.stringify(field)}`, async () =>
      expectRejection(await send(GET, ['Host: pets', field]), 400, 'bad_request'))
  }

  for (const [what, fields, body, end] of [
    ['with Content-Length and chunks', ['Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n', false],
    ['with two Content-Lengths', ['Content-Length: 5', 'Content-Length: 6'], '0\r\n\r\n', false],
    ['in broken chunks', ['Transfer-Encoding: chunked'], 'xyz\r\n', false],
    ['that ends early', ['Content-Length: 50'], '{"name":', true],
  ] as const) {
    it(`returns 400 for a body ${what}`, async () => {
      expectRejection(await send(POST, ['Host: pets', auth(), JSON_TYPE, ...fields], { body, end }), 400, 'bad_request')
    })
  }

  it('returns 431 for a head of more than 8 KiB, but not for a shorter one', async () => {
    expectRejection(await send(GET, ['Host: pets', auth(), `X-Long: ${'x'.repeat(9000)}`]), 431, 'headers_too_large')
    expectRejection(await send(`GET /v1/pets?${'x'.repeat(9000)} HTTP/1.1`), 431, 'headers_too_large')
    const { status } = await send(GET, ['Host: pets', auth(), 'Connection: close', `X-Long: ${'x'.repeat(7500)}`])
    expect(status).to.equal(200)
  })

  for (const [what, requestLine, fields, message] of [
    ['no Host', GET, [], /Host/],
    ['two Hosts (RFC 9112, 3.2)', GET, ['Host: pets', 'Host: evil.example'], /Host/],
    ['a Host with a space', 'GET /livez HTTP/1.1', ['Host: a b'], /Host/],
    ['a Host with a path', GET, ['Host: pets/v1'], /Host/],
    ['a Host with a user', 'OPTIONS /v1/pets HTTP/1.1', ['Host: me@pets'], /Host/],
    ['a port that is not a number', GET, ['Host: pets:x'], /Host/],
    ['HTTP/2.0 in the request line', 'GET /v1/pets HTTP/2.0', ['Host: pets'], /version/],
    ['HTTP/0.9 in the request line', 'GET /v1/pets HTTP/0.9', ['Host: pets'], /version/],
    ['a transfer coding other than chunked', POST, ['Host: pets', JSON_TYPE, 'Transfer-Encoding: gzip, chunked'], /Transfer-Encoding/],
    [
      'Transfer-Encoding over HTTP/1.0',
      'POST /v1/pets HTTP/1.0',
      ['Host: pets', JSON_TYPE, 'Transfer-Encoding: chunked'],
      /Transfer-Encoding/,
    ],
  ] as const) {
    it(`returns 400 for ${what}, with quota headers, without a charge, and closes the connection`, async () => {
      const { secret } = await api.issueKey('free')
      const body = requestLine.startsWith('POST') ? '0\r\n\r\n' : ''
      const response = await send(requestLine, [...fields, `Authorization: Bearer ${secret}`], { body })
      expect(expectError(response, 400, 'bad_request')).to.match(message)
      expect(response.headers['connection']).to.equal('close')
      expect(readQuotaHeaders(response).limit).to.equal(30)
      expect(readQuotaHeaders(await api.send('/v1/pets', { key: secret })).remaining).to.equal(59)
    })
  }

  it('does not include one without a Host over HTTP/1.0', async () => {
    expect((await send('GET /v1/pets HTTP/1.0', [auth()])).status).to.equal(200)
  })

  for (const host of [...'pets PETS.example pets:8080 127.0.0.1:80 [::1] [::1]:8080 pets_2.example xn--pts-loa.example: '.split(' ')]) {
    it(`does not include one with the Host ${JSON.stringify(host)}`, async () => {
      const { status } = await send('GET /v1/pets?limit=1 HTTP/1.1', [`Host: ${host}`, auth(), 'Connection: close'])
      expect(status).to.equal(200)
    })
  }

  it('does not include one with an absolute URL, which is routed by its path (RFC 9112, 3.2.2)', async () => {
    const fields = ['Host: pets', auth(), 'Connection: close']
    expect((await send('GET http://pets.example/v1/pets?limit=1 HTTP/1.1', fields)).text).to.match(/^\[\{"id":1,[^[]*\}\]$/)
    expectError(await send('GET http://pets.example/v1/none HTTP/1.1', fields), 404, 'not_found')
  })

  for (const target of [
    ...'http://[/v1/pets http://[::1/v1/pets http://a:b/v1/pets http:// /v1/pets/% ? /v1/pets?% /%00'.split(' '),
    '/v1/pets/\\..\\',
    '/v1/pets#x',
  ]) {
    it(`never gets a 5xx: GET ${target}`, async () => {
      expect((await send(`GET ${target} HTTP/1.1`, ['Host: pets', auth(), 'Connection: close'])).status).to.be.within(200, 499)
    })
  }

  it('does not prevent the response to an earlier request on the connection', async () => {
    const valid = head('GET /v1/pets?limit=1 HTTP/1.1', ['Host: pets', auth()])
    const responses = await exchange(api.url, valid, { afterFirst: 'rubbish\r\n\r\n' })
    expect(responses.map(({ status }) => status)).to.deep.equal([200, 400])
  })

  it('causes the connection to be closed even if the client keeps its side open', async () => {
    const { hostname, port } = new URL(api.url)
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    socket.write('hello\r\n\r\n')
    socket.resume()
    await once(socket, 'end')
    await until('the server closes the connection', async () => (await countConnections(api.server)) === 0)
    socket.destroy()
  })

  describe('because it is too slow', () => {
    let server: Server
    let url: string

    before(async () => {
      server = makeServer(api.parts.api, { log: api.parts.log })
      expect(server).to.include({ headersTimeout: 10_000, requestTimeout: 30_000 })
      Object.assign(server, { headersTimeout: 60, requestTimeout: 60, connectionsCheckingInterval: 20 })
      url = await listen(server, '127.0.0.1', 0)
    })
    after(() => {
      server.closeAllConnections()
      server.close()
    })

    for (const [what, bytes] of Object.entries({ head: `${GET}\r\nHost: pets\r\n`, 'request line': 'GET /v1/pe' })) {
      it(`returns 408 if the ${what} does not end`, async () => expectRejection(await exchangeOnce(url, bytes), 408, 'request_timeout'))
    }
  })
})
