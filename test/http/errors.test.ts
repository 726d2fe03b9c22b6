import { expect } from 'chai'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import type { Sent } from '../support/api.js'
import { useApi } from '../support/api.js'

describe('an error', () => {
  const api = useApi()

  for (const path of [
    ...'/v1 /v1/ /v1/none /v1/Pets /v1/PETS /v1/pets/ /v1//pets /v1/pets/1/ /v1/pets/1/2 /v1/pets%2F1 /v1/%70ets'.split(' '),
    ...'/v1/store /v1/store/orders/ /v1/store/Orders /v1/store/orders/1 /v1/store/order /v1/pets.json /v1/usage/'.split(' '),
    ...'/v1/../livez /v1/pets;x=1'.split(' '),
  ]) {
    it(`is 404 for ${path}`, async () => void expectError(await api.call(path), 404, 'not_found'))
  }

  for (const path of [
    ...'/ /V1/pets /v2/pets /v1pets /pets //v1/pets /livez/ /LIVEZ /docs/ /docs/../v1/pets /favicon.ico /.env'.split(' '),
    ...'/metrics /health'.split(' '),
  ]) {
    it(`is 404 with quota headers for ${path}, without a key`, async () => {
      const response = await api.send(path)
      expectError(response, 404, 'not_found')
      expect(readQuotaHeaders(response).limit).to.equal(30)
    })
  }

  it('is 401 without a key for any path under /v1, and for /v1 itself', async () => {
    for (const path of ['/v1', '/v1/', '/v1/none']) expectError(await api.send(path), 401, 'missing_api_key')
  })

  for (const accept of [
    ...'text/html text/* application/xml application/problem+json application/json;q=0 application/*;q=0'.split(' '),
    'application/json;q=0, */*',
    'image/png, text/html',
  ]) {
    it(`is 406, but still in JSON, for Accept: ${accept}`, async () => {
      const headers = { accept }
      for (const path of ['/v1/pets', '/v1/pets/1', '/v1/store/orders', '/v1/usage']) {
        expectError(await api.call(path, { headers }), 406, 'not_acceptable')
      }
      expectError(await api.call('/v1/pets', { method: 'POST', headers, body: {} }), 406, 'not_acceptable')
    })
  }

  for (const accept of [
    ...'*/* application/* application/json APPLICATION/JSON application/json;q=0.1'.split(' '),
    'text/html, */*;q=0.1',
    'application/xml, application/json;q=0.5',
    'application/json; charset=utf-8',
  ]) {
    it(`is not returned for Accept: ${accept}`, async () =>
      expect(await api.call('/v1/pets', { headers: { accept } })).to.have.property('status', 200))
  }

  it('is 417 for an unknown expectation', async () => {
    for (const expectation of ['a-miracle', '200-ok', '100-continue, a-miracle']) {
      expectError(await api.call('/v1/pets', { headers: { expect: expectation } }), 417, 'expectation_failed')
    }
  })

  it('is the first that applies, in the order 401, 404, 405, 417, 406, missing body, 415, 413, invalid JSON, invalid fields', async () => {
    const wrong = { accept: 'text/html', expect: 'a-miracle', 'content-type': 'text/plain' }
    const text = { 'content-type': 'text/plain' }
    const json = { 'content-type': 'application/json' }
    const body = 'x'.repeat(70_000)
    const { key } = api
    const steps: [string, Sent, number, string][] = [
      ['/v1/none', { headers: wrong, body }, 401, 'missing_api_key'],
      ['/v1/none', { headers: wrong, body, key }, 404, 'not_found'],
      ['/v1/store/orders', { headers: wrong, body, key }, 405, 'method_not_allowed'],
      ['/v1/pets', { headers: wrong, body, key }, 417, 'expectation_failed'],
      ['/v1/pets', { headers: { ...wrong, expect: [] }, key }, 406, 'not_acceptable'],
      ['/v1/pets', { headers: text, key }, 400, 'missing_body'],
      ['/v1/pets', { headers: text, body, key }, 415, 'unsupported_media_type'],
      ['/v1/pets', { headers: json, body, key }, 413, 'payload_too_large'],
      ['/v1/pets', { headers: json, body: 'x', key }, 400, 'invalid_json'],
      ['/v1/pets', { headers: { 'idempotency-key': '!' }, body: {}, key }, 400, 'validation_failed'],
    ]
    for (const [path, sent, status, code] of steps) expectError(await api.send(path, { method: 'POST', ...sent }), status, code)
  })
})
