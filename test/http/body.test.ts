import { expect } from 'chai'
import { gzipSync } from 'node:zlib'
import { BODY_LIMIT_BYTES } from '../../src/adapters/http/pipeline/hardening.js'
import { expectError } from '../support/responses.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { exchangeOnce, exchange, head } from '../support/raw-socket.js'
import { issueAmpleKey } from '../support/api.js'

const REX = '{"name":"Rex","categoryId":7}'

describe('the body of a request', () => {
  let api: TestApi
  let key: string

  before(async () => {
    api = await startApi()
    key = await issueAmpleKey(api)
  })
  after(() => api.stop())

  const post = (body: unknown, headers: Record<string, string> = {}) =>
    api.send('/v1/pets', { method: 'POST', key, headers: { 'content-type': 'application/json', ...headers }, body })
  const rawHead = (...fields: string[]) =>
    head('POST /v1/pets HTTP/1.1', [
      'Host: pets',
      `Authorization: Bearer ${key}`,
      'Connection: close',
      'Content-Type: application/json',
      ...fields,
    ])
  const chunked = (...chunks: string[]) => [...chunks, ''].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')

  describe('that is missing', () => {
    it('is 400, not 415, even without a media type', async () => {
      expectError(await api.send('/v1/pets', { method: 'POST', key }), 400, 'missing_body')
      expectError(await api.send('/v1/pets', { method: 'POST', key, headers: { 'content-length': '0' } }), 400, 'missing_body')
      expectError(await post('', { 'content-type': 'text/plain' }), 400, 'missing_body')
    })

    it('is 400 when it was announced in chunks, of which there are none', async () => {
      expectError(await exchangeOnce(api.url, rawHead('Transfer-Encoding: chunked') + chunked()), 400, 'missing_body')
    })

    it('is not one of white space only, which is no JSON', async () => void expectError(await post(' \n'), 400, 'invalid_json'))
  })

  describe('media type', () => {
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'Application/JSON;charset="UTF-8"',
      'application/json ; a=b',
    ]) {
      it(`${type} is read`, async () => expect(await post(REX, { 'content-type': type })).to.have.property('status', 201))
    }

    for (const type of [
      '',
      '*/*',
      'json',
      'text/plain',
      'text/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/vnd.api+json',
      'application/json-patch+json',
      'application/problem+json',
      'application/json-seq',
      'application/json; charset=iso-8859-1',
      'application/json; charset=utf-16',
    ]) {
      it(`"${type}" is 415, and the answer says what is read`, async () => {
        const answer = await post(REX, { 'content-type': type })
        expectError(answer, 415, 'unsupported_media_type')
        expect(answer.headers).to.include({ accept: 'application/json' })
      })
    }

    for (const coding of ['gzip', 'GZIP', 'deflate', 'br', 'zstd', 'identity, gzip']) {
      it(`compressed with ${coding} it is 415, and the answer says not to`, async () => {
        const answer = await post(gzipSync(REX), { 'content-encoding': coding })
        expectError(answer, 415, 'unsupported_media_type')
        expect(answer.headers).to.include({ 'accept-encoding': 'identity' })
      })
    }

    it('identity is no compression, in any letter case', async () => {
      for (const coding of ['identity', 'Identity', 'IDENTITY'])
        expect((await post(REX, { 'content-encoding': coding })).status).to.equal(201)
    })
  })

  describe('size', () => {
    const padded = (bytes: number) => REX.padEnd(bytes)

    it('of exactly 64 KiB is read, announced or in chunks', async () => {
      expect(BODY_LIMIT_BYTES).to.equal(65_536)
      expect((await post(padded(65_536))).status).to.equal(201)
      const inChunks = rawHead('Transfer-Encoding: chunked') + chunked(padded(65_530), ' '.repeat(6))
      expect((await exchangeOnce(api.url, inChunks)).status).to.equal(201)
    })

    it('of one byte more is 413, announced or in chunks, and the connection ends', async () => {
      const announced = await exchangeOnce(api.url, `${rawHead('Content-Length: 65537')}${padded(65_537)}`)
      const inChunks = await exchangeOnce(api.url, rawHead('Transfer-Encoding: chunked') + chunked(padded(65_530), ' '.repeat(7)))
      for (const answer of [announced, inChunks]) {
        expectError(answer, 413, 'payload_too_large')
        expect(answer.headers).to.include({ connection: 'close' })
      }
    })

    it('is counted in bytes, not in characters', async () => {
      const name = '\u{1f415}'.repeat(16_384)
      expectError(await post(JSON.stringify({ name, categoryId: 7 })), 413, 'payload_too_large')
    })

    it('that is announced too large is refused before a byte has come', async () => {
      expectError(await exchangeOnce(api.url, rawHead('Content-Length: 10000000000')), 413, 'payload_too_large')
    })
  })

  describe('whose sender waits for 100 Continue', () => {
    const waiting = (fields: string[], path = '/v1/pets') =>
      exchange(api.url, head(`POST ${path} HTTP/1.1`, ['Host: pets', 'Connection: close', 'Expect: 100-continue', ...fields]), {
        afterFirst: REX,
      })
    const JSON_TYPE = 'Content-Type: application/json'
    const statuses = async (answers: ReturnType<typeof waiting>) => (await answers).map(({ status }) => status)

    it('is asked for when nothing speaks against the request, and then read', async () => {
      const answers = waiting([`Authorization: Bearer ${key}`, JSON_TYPE, `Content-Length: ${REX.length}`])
      expect(await statuses(answers)).to.deep.equal([100, 201])
    })

    it('is not asked for before a 401, 404, 405, 406, 413 or 415', async () => {
      const auth = `Authorization: Bearer ${key}`
      const length = `Content-Length: ${REX.length}`
      expect(await statuses(waiting([JSON_TYPE, length]))).to.deep.equal([401])
      expect(await statuses(waiting([auth, JSON_TYPE, length], '/v1/none'))).to.deep.equal([404])
      expect(await statuses(waiting([auth, JSON_TYPE, length], '/v1/store/orders'))).to.deep.equal([405])
      expect(await statuses(waiting([auth, JSON_TYPE, length, 'Accept: text/html']))).to.deep.equal([406])
      expect(await statuses(waiting([auth, 'Content-Type: text/plain', length]))).to.deep.equal([415])
      expect(await statuses(waiting([auth, JSON_TYPE, 'Content-Length: 65537']))).to.deep.equal([413])
    })

    it('is read without being asked for over HTTP/1.0, which has no 100', async () => {
      const fields = [`Authorization: Bearer ${key}`, 'Expect: 100-continue', JSON_TYPE, `Content-Length: ${REX.length}`]
      const answers = await exchange(api.url, head('POST /v1/pets HTTP/1.0', fields) + REX)
      expect(answers.map(({ status }) => status)).to.deep.equal([201])
    })
  })

  it('that is refused unread is not taken for the next request on the connection', async () => {
    const smuggled = head('DELETE /v1/pets HTTP/1.1', ['Host: pets', `Authorization: Bearer ${key}`])
    const refused = head('POST /v1/pets HTTP/1.1', ['Host: pets', 'Content-Type: application/json', `Content-Length: ${smuggled.length}`])
    const next = head('GET /v1/pets HTTP/1.1', ['Host: pets', `Authorization: Bearer ${key}`, 'Connection: close'])
    const answers = await exchange(api.url, refused + smuggled + next)
    expect(answers.map(({ status }) => status)).to.deep.equal([401, 200])
  })

  it('of a request that takes none is passed over', async () => {
    for (const body of [REX, 'rubbish', 'x'.repeat(100_000)]) {
      expect((await api.send('/v1/pets', { key, body })).status).to.equal(200)
    }
  })
})
