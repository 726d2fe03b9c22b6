import { expect } from 'chai'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import type { Sent, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { issueAmpleKey } from '../support/api.js'

describe('an error', () => {
  let api: TestApi
  let key: string

  before(async () => {
    api = await startApi()
    key = await issueAmpleKey(api)
  })
  after(() => api.stop())

  const get = (path: string, headers = {}) => api.send(path, { key, headers })

  describe('404', () => {
    for (const path of [
      '/v1',
      '/v1/',
      '/v1/none',
      '/v1/Pets',
      '/v1/PETS',
      '/v1/pets/',
      '/v1//pets',
      '/v1/pets/1/',
      '/v1/pets/1/2',
      '/v1/pets%2F1',
      '/v1/%70ets',
      '/v1/store',
      '/v1/store/orders/',
      '/v1/store/Orders',
      '/v1/store/orders/1',
      '/v1/store/order',
      '/v1/pets.json',
      '/v1/../livez',
      '/v1/pets;x=1',
    ]) {
      it(`${path} is nothing`, async () => void expectError(await get(path), 404, 'not_found'))
    }

    for (const path of [
      '/',
      '/V1/pets',
      '/v2/pets',
      '/v1pets',
      '/pets',
      '//v1/pets',
      '/livez/',
      '/LIVEZ',
      '/docs/',
      '/docs/../v1/pets',
      '/favicon.ico',
      '/.env',
      '/metrics',
      '/health',
    ]) {
      it(`${path}, outside /v1, is nothing for everyone, with quota headers as on every error`, async () => {
        const answer = await api.send(path)
        expectError(answer, 404, 'not_found')
        expect(readQuotaHeaders(answer).limit).to.equal(30)
      })
    }
  })

  describe('406', () => {
    for (const accept of [
      'text/html',
      'text/*',
      'application/xml',
      'application/problem+json',
      'application/json;q=0',
      'application/json;q=0, */*',
      'application/*;q=0',
      'image/png, text/html',
    ]) {
      it(`is the answer to Accept: ${accept}, in JSON nevertheless`, async () => {
        for (const path of ['/v1/pets', '/v1/pets/1', '/v1/store/orders']) expectError(await get(path, { accept }), 406, 'not_acceptable')
        expectError(await api.send('/v1/pets', { method: 'POST', key, headers: { accept }, body: {} }), 406, 'not_acceptable')
      })
    }

    for (const accept of [
      '*/*',
      'application/*',
      'application/json',
      'APPLICATION/JSON',
      'application/json;q=0.1',
      'text/html, */*;q=0.1',
      'application/xml, application/json;q=0.5',
      'application/json; charset=utf-8',
    ]) {
      it(`is not the answer to Accept: ${accept}`, async () => expect(await get('/v1/pets', { accept })).to.have.property('status', 200))
    }
  })

  it('417 is the answer to an expectation that nobody can meet', async () => {
    for (const expectation of ['a-miracle', '200-ok', '100-continue, a-miracle']) {
      expectError(await get('/v1/pets', { expect: expectation }), 417, 'expectation_failed')
    }
  })

  it('is the first that is found: 401, 404, 405, 417, 406, 400 for a missing body, 415, 413, 400 for JSON, 400 for the schema', async () => {
    const wrong = { accept: 'text/html', expect: 'a-miracle', 'content-type': 'text/plain' }
    const big = 'x'.repeat(70_000)
    const steps: [string, Sent, number, string][] = [
      ['/v1/none', { method: 'POST', headers: wrong, body: big }, 401, 'missing_api_key'],
      ['/v1/none', { method: 'POST', headers: wrong, body: big, key }, 404, 'not_found'],
      ['/v1/store/orders', { method: 'POST', headers: wrong, body: big, key }, 405, 'method_not_allowed'],
      ['/v1/pets', { method: 'POST', headers: wrong, body: big, key }, 417, 'expectation_failed'],
      ['/v1/pets', { method: 'POST', headers: { ...wrong, expect: [] }, key }, 406, 'not_acceptable'],
      ['/v1/pets', { method: 'POST', headers: { 'content-type': 'text/plain' }, key }, 400, 'missing_body'],
      ['/v1/pets', { method: 'POST', headers: { 'content-type': 'text/plain' }, body: big, key }, 415, 'unsupported_media_type'],
      ['/v1/pets', { method: 'POST', headers: { 'content-type': 'application/json' }, body: big, key }, 413, 'payload_too_large'],
      ['/v1/pets', { method: 'POST', headers: { 'content-type': 'application/json' }, body: 'x', key }, 400, 'invalid_json'],
      ['/v1/pets', { method: 'POST', headers: { 'idempotency-key': '!' }, body: {}, key }, 400, 'validation_failed'],
    ]
    for (const [path, sent, status, code] of steps) expectError(await api.send(path, sent), status, code)
  })
})
