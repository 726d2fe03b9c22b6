import { expect } from 'chai'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { listen, makeServer } from '../../src/adapters/http/server/server.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import type { Exchange, RawResponse } from '../support/raw-socket.js'
import { exchangeOnce, exchange, head } from '../support/raw-socket.js'
import { until } from '../support/until.js'
import { issueAmpleKey } from '../support/api.js'

describe('what Node refuses by itself', () => {
  let api: TestApi
  let auth: string

  before(async () => {
    api = await startApi()
    auth = `Authorization: Bearer ${await issueAmpleKey(api)}`
  })
  after(() => api.stop())

  const send = (requestLine: string, fields: readonly string[] = ['Host: pets'], options: Exchange & { body?: string } = {}) =>
    exchangeOnce(api.url, head(requestLine, fields) + (options.body ?? ''), options)

  /** An error body like any other, a request id that the log knows, and the end of the connection. */
  function expectRejection(answer: RawResponse, status: number, code: string): void {
    expectError(answer, status, code)
    expect(answer.headers['connection']).to.equal('close')
    expect(answer.headers['x-request-id']).to.match(/^[0-9a-f-]{36}$/)
    expect(answer.headers).to.include({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
    expect(api.logLines.filter((line) => line['requestId'] === answer.headers['x-request-id'])).to.have.length(1)
  }

  it('ends the connection of a client that keeps its own side open', async () => {
    const { hostname, port } = new URL(api.url)
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    socket.write('hello\r\n\r\n')
    socket.resume()
    await once(socket, 'end')
    await until('the server lets the connection go', async () => (await openConnections(api.server)) === 0)
    socket.destroy()
  })

  for (const requestLine of [
    'hello',
    'GET',
    'GET /v1/pets HTTP/1.1 x',
    'GET /v1 pets HTTP/1.1',
    'GET /v1/pets HTTP/7.1',
    'GET /v1/pets FTP/1.1',
    'G@T /v1/pets HTTP/1.1',
    '\u0016\u0003\u0001',
  ]) {
    it(`the request line ${JSON.stringify(requestLine)} is 400 with an error body`, async () => {
      expectRejection(await send(requestLine, ['Host: pets'], { end: true }), 400, 'bad_request')
    })
  }

  for (const [what, field] of Object.entries({
    'a field without a colon': 'Host pets',
    'a space before the colon': 'Accept : x',
    'a folded field': 'X-A: b\r\n c',
    'a control character': 'X-A: \u0001',
    'a length that is none': 'Content-Length: x',
    'a negative length': 'Content-Length: -1',
  })) {
    it(`${what} in the head is 400 with an error body`, async () =>
      expectRejection(await send('GET /v1/pets HTTP/1.1', ['Host: pets', field]), 400, 'bad_request'))
  }

  it('a body of two lengths is 400: proxies and servers differ in which they believe', async () => {
    const fields = ['Host: pets', auth, 'Content-Type: application/json']
    for (const lengths of [
      ['Content-Length: 5', 'Transfer-Encoding: chunked'],
      ['Content-Length: 5', 'Content-Length: 6'],
    ]) {
      expectRejection(await send('POST /v1/pets HTTP/1.1', [...fields, ...lengths], { body: '0\r\n\r\n' }), 400, 'bad_request')
    }
  })

  it('a body in broken chunks, or cut short, is 400', async () => {
    const fields = ['Host: pets', auth, 'Content-Type: application/json']
    expectRejection(
      await send('POST /v1/pets HTTP/1.1', [...fields, 'Transfer-Encoding: chunked'], { body: 'xyz\r\n' }),
      400,
      'bad_request',
    )
    expectRejection(
      await send('POST /v1/pets HTTP/1.1', [...fields, 'Content-Length: 50'], { body: '{"name":', end: true }),
      400,
      'bad_request',
    )
  })

  it('a head of more than 8 KiB is 431', async () => {
    expectRejection(await send('GET /v1/pets HTTP/1.1', ['Host: pets', auth, `X-Long: ${'x'.repeat(9000)}`]), 431, 'headers_too_large')
    expectRejection(await send(`GET /v1/pets?${'x'.repeat(9000)} HTTP/1.1`), 431, 'headers_too_large')
  })

  it('a head of less than 8 KiB is not', async () => {
    const answer = await send('GET /v1/pets HTTP/1.1', ['Host: pets', auth, 'Connection: close', `X-Long: ${'x'.repeat(7500)}`])
    expect(answer.status).to.equal(200)
  })

  it('a missing Host gets 400 over HTTP/1.1 before the key is charged, and is valid over HTTP/1.0', async () => {
    const answer = await send('GET /v1/pets HTTP/1.1', [auth])
    expect(expectError(answer, 400, 'bad_request')).to.match(/Host/)
    expect(readQuotaHeaders(answer).limit).to.equal(30)
    expect((await send('GET /v1/pets HTTP/1.0', [auth])).status).to.equal(200)
  })

  it('two Hosts are 400 (RFC 9112, 3.2): proxies and servers differ in which they believe', async () => {
    expectError(await send('GET /v1/pets HTTP/1.1', ['Host: pets', 'Host: evil.example', auth, 'Connection: close']), 400, 'bad_request')
  })

  for (const [what, requestLine, fields, message] of [
    ['a Host with a space', 'GET /livez HTTP/1.1', ['Host: a b'], /Host/],
    ['a Host with a path', 'GET /v1/pets HTTP/1.1', ['Host: pets/v1'], /Host/],
    ['a Host with a user', 'OPTIONS /v1/pets HTTP/1.1', ['Host: me@pets'], /Host/],
    ['a port that is not a number', 'GET /v1/pets HTTP/1.1', ['Host: pets:x'], /Host/],
    ['HTTP/2.0 in the request line', 'GET /v1/pets HTTP/2.0', ['Host: pets'], /version/],
    ['HTTP/0.9 in the request line', 'GET /v1/pets HTTP/0.9', ['Host: pets'], /version/],
    [
      'a transfer coding other than chunked',
      'POST /v1/pets HTTP/1.1',
      ['Host: pets', 'Content-Type: application/json', 'Transfer-Encoding: gzip, chunked'],
      /Transfer-Encoding/,
    ],
    [
      'a Transfer-Encoding over HTTP/1.0',
      'POST /v1/pets HTTP/1.0',
      ['Host: pets', 'Content-Type: application/json', 'Transfer-Encoding: chunked'],
      /Transfer-Encoding requires HTTP\/1\.1/,
    ],
  ] as const) {
    it(`${what} gets 400 with quota headers, uncharged, and the connection ends`, async () => {
      const { secret } = await api.issueKey('free')
      const body = '0\r\n\r\n'
      const answer = await send(requestLine, [...fields, `Authorization: Bearer ${secret}`], {
        body: requestLine.startsWith('POST') ? body : '',
      })
      expect(expectError(answer, 400, 'bad_request')).to.match(message)
      expect(answer.headers['connection']).to.equal('close')
      expect(readQuotaHeaders(answer).limit).to.equal(30)
      expect(readQuotaHeaders(await api.send('/v1/pets', { key: secret })).remaining).to.equal(59)
    })
  }

  for (const host of [
    'pets',
    'PETS.example',
    'pets:8080',
    '127.0.0.1:80',
    '[::1]',
    '[::1]:8080',
    'pets_2.example',
    'xn--pts-loa.example:',
    '',
  ]) {
    it(`the Host ${JSON.stringify(host)} is valid`, async () => {
      expect((await send('GET /v1/pets?limit=1 HTTP/1.1', [`Host: ${host}`, auth, 'Connection: close'])).status).to.equal(200)
    })
  }

  it('an address in absolute form is read like its path (RFC 9112, 3.2.2)', async () => {
    const fields = ['Host: pets', auth, 'Connection: close']
    expect((await send('GET http://pets.example/v1/pets?limit=1 HTTP/1.1', fields)).text).to.match(/^\[\{"id":1,[^[]*\}\]$/)
    expectError(await send('GET http://pets.example/v1/none HTTP/1.1', fields), 404, 'not_found')
  })

  for (const target of [
    'http://[/v1/pets',
    'http://[::1/v1/pets',
    'http://a:b/v1/pets',
    'http://',
    '/v1/pets/%',
    '?',
    '/v1/pets?%',
    '/%00',
    '/v1/pets/\\..\\',
    '/v1/pets#x',
  ]) {
    it(`GET ${target} is no problem of ours`, async () => {
      const answer = await send(`GET ${target} HTTP/1.1`, ['Host: pets', auth, 'Connection: close'])
      expect(answer.status).to.be.within(200, 499)
    })
  }

  it('a bad request behind a good one on the same connection leaves the good one its answer', async () => {
    const good = head('GET /v1/pets?limit=1 HTTP/1.1', ['Host: pets', auth])
    const answers = await exchange(api.url, good, { afterFirst: 'rubbish\r\n\r\n' })
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 400])
  })

  describe('is slow', () => {
    let server: Server
    let url: string

    before(async () => {
      server = makeServer(api.parts.api, { log: api.parts.log })
      expect(server.headersTimeout).to.equal(10_000)
      expect(server.requestTimeout).to.equal(30_000)
      // The same server, with less patience.
      Object.assign(server, { headersTimeout: 60, requestTimeout: 60, connectionsCheckingInterval: 20 })
      url = await listen(server, '127.0.0.1', 0)
    })
    after(() => {
      server.closeAllConnections()
      server.close()
    })

    for (const [what, bytes] of Object.entries({
      'a head that does not end': 'GET /v1/pets HTTP/1.1\r\nHost: pets\r\n',
      'a request line that does not end': 'GET /v1/pe',
    })) {
      it(`${what} is 408 with an error body`, async () => expectRejection(await exchangeOnce(url, bytes), 408, 'request_timeout'))
    }
  })
})

async function openConnections(server: Server): Promise<number> {
  return new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))))
}
