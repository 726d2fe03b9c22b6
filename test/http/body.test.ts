import { expect } from 'chai'
import { gzipSync } from 'node:zlib'
import { BODY_LIMIT_BYTES } from '../../src/adapters/http/server/limits.js'
import { expectError } from '../support/responses.js'
import { useApi } from '../support/api.js'
import { exchange, exchangeOnce, head } from '../support/raw-socket.js'

const REX = '{"name":"Rex","categoryId":7}'
const JSON_TYPE = 'Content-Type: application/json'

describe('the body of a request', () => {
  const api = useApi()

  const auth = () => `Authorization: Bearer ${api.key}`
  const rawHead = (...fields: string[]) => head('POST /v1/pets HTTP/1.1', ['Host: pets', auth(), JSON_TYPE, ...fields])
  const encodeChunks = (...chunks: string[]) => [...chunks, ''].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')

  it('returns 400 if it is missing, even without a media type', async () => {
    expectError(await api.call('/v1/pets', { method: 'POST' }), 400, 'missing_body')
    expectError(await api.call('/v1/pets', { method: 'POST', headers: { 'content-length': '0' } }), 400, 'missing_body')
    expectError(await api.postPet('', { 'content-type': 'text/plain' }), 400, 'missing_body')
    expectError(
      await exchangeOnce(api.url, rawHead('Connection: close', 'Transfer-Encoding: chunked') + encodeChunks()),
      400,
      'missing_body',
    )
  })

  it('is not missing but invalid JSON if it consists of white space', async () =>
    void expectError(await api.postPet(' \n'), 400, 'invalid_json'))

  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;charset="UTF-8"',
    'application/json; charset=utf8',
    'application/json ; a=b',
  ]) {
    it(`may have the media type ${type}`, async () =>
      expect(await api.postPet(REX, { 'content-type': type })).to.have.property('status', 201))
  }

  for (const type of [
    ...' */* json text/plain text/json application/x-www-form-urlencoded application/vnd.api+json'.split(' '),
    ...'application/json-patch+json application/problem+json application/json-seq'.split(' '),
    'multipart/form-data; boundary=x',
    'application/json; charset=iso-8859-1',
    'application/json; charset=utf-16',
  ]) {
    it(`returns 415 with Accept for the media type "${type}"`, async () => {
      const response = await api.postPet(REX, { 'content-type': type })
      expectError(response, 415, 'unsupported_media_type')
      expect(response.headers).to.include({ accept: 'application/json' })
    })
  }

  for (const coding of ['gzip', 'GZIP', 'deflate', 'br', 'zstd', 'identity, gzip']) {
    it(`returns 415 with Accept-Encoding for the content coding ${coding}`, async () => {
      const response = await api.postPet(gzipSync(REX), { 'content-encoding': coding })
      expectError(response, 415, 'unsupported_media_type')
      expect(response.headers).to.include({ 'accept-encoding': 'identity' })
    })
  }

  it('may have the content coding identity, in any letter case', async () => {
    for (const coding of ['identity', 'Identity', 'IDENTITY'])
      expect((await api.postPet(REX, { 'content-encoding': coding })).status).to.equal(201)
  })

  it('may have 64 KiB, with Content-Length or in chunks', async () => {
    expect(BODY_LIMIT_BYTES).to.equal(65_536)
    expect((await api.postPet(REX.padEnd(65_536))).status).to.equal(201)
    const inChunks = rawHead('Connection: close', 'Transfer-Encoding: chunked') + encodeChunks(REX.padEnd(65_530), ' '.repeat(6))
    expect((await exchangeOnce(api.url, inChunks)).status).to.equal(201)
  })

  for (const [what, makeRequest] of Object.entries({
    'with Content-Length': () => rawHead('Content-Length: 65537') + REX.padEnd(65_537),
    'in chunks': () => rawHead('Transfer-Encoding: chunked') + encodeChunks(REX.padEnd(65_530), ' '.repeat(7)),
    'announced by Content-Length and not sent': () => rawHead('Content-Length: 10000000000'),
  })) {
    it(`returns 413 above 64 KiB, ${what}, and closes the connection`, async () => {
      const response = await exchangeOnce(api.url, makeRequest())
      expectError(response, 413, 'payload_too_large')
      expect(response.headers).to.include({ connection: 'close' })
    })
  }

  it('is measured in bytes, not in characters', async () => {
    const name = '\u{1f415}'.repeat(16_384)
    expectError(await api.postPet({ name, categoryId: 7 }), 413, 'payload_too_large')
  })

  describe('of a client that waits for 100 Continue', () => {
    const LENGTH = `Content-Length: ${REX.length}`
    const getStatuses = async (fields: string[], path = '/v1/pets') => {
      const bytes = head(`POST ${path} HTTP/1.1`, ['Host: pets', 'Connection: close', 'Expect: 100-continue', ...fields])
      return (await exchange(api.url, bytes, { afterFirst: REX })).map(({ status }) => status)
    }

    it('is requested if the request head is valid', async () => {
      expect(await getStatuses([auth(), JSON_TYPE, LENGTH])).to.deep.equal([100, 201])
    })

    it('is not requested before a 401, 404, 405, 406, 413 or 415', async () => {
      expect(await getStatuses([JSON_TYPE, LENGTH])).to.deep.equal([401])
      expect(await getStatuses([auth(), JSON_TYPE, LENGTH], '/v1/none')).to.deep.equal([404])
      expect(await getStatuses([auth(), JSON_TYPE, LENGTH], '/v1/store/orders')).to.deep.equal([405])
      expect(await getStatuses([auth(), JSON_TYPE, LENGTH, 'Accept: text/html'])).to.deep.equal([406])
      expect(await getStatuses([auth(), 'Content-Type: text/plain', LENGTH])).to.deep.equal([415])
      expect(await getStatuses([auth(), JSON_TYPE, 'Content-Length: 65537'])).to.deep.equal([413])
    })

    it('is read without 100 over HTTP/1.0, which does not have that status', async () => {
      const bytes = head('POST /v1/pets HTTP/1.0', [auth(), 'Expect: 100-continue', JSON_TYPE, LENGTH]) + REX
      expect((await exchange(api.url, bytes)).map(({ status }) => status)).to.deep.equal([201])
    })
  })

  it('is not parsed as the next request on the connection if the request is rejected before it is read', async () => {
    const smuggled = head('DELETE /v1/pets HTTP/1.1', ['Host: pets', auth()])
    const rejected = head('POST /v1/pets HTTP/1.1', ['Host: pets', JSON_TYPE, `Content-Length: ${smuggled.length}`])
    const next = head('GET /v1/pets HTTP/1.1', ['Host: pets', auth(), 'Connection: close'])
    const responses = await exchange(api.url, rejected + smuggled + next)
    expect(responses.map(({ status }) => status)).to.deep.equal([401, 200])
  })

  it('is ignored if the operation has none', async () => {
    for (const body of [REX, 'rubbish', 'x'.repeat(100_000)]) expect((await api.call('/v1/pets', { body })).status).to.equal(200)
  })
})
