import { METHODS } from 'node:http'
import { expect } from 'chai'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { exchangeOnce, head } from '../support/raw-socket.js'
import { issueAmpleKey } from '../support/api.js'

const ALLOWED: Readonly<Record<string, string>> = {
  '/v1/pets': 'GET, HEAD, OPTIONS, POST',
  '/v1/pets/1': 'GET, HEAD, OPTIONS',
  '/v1/store/orders': 'GET, HEAD, OPTIONS',
  '/livez': 'GET, HEAD, OPTIONS',
  '/readyz': 'GET, HEAD, OPTIONS',
  '/openapi.json': 'GET, HEAD, OPTIONS',
  '/openapi.yaml': 'GET, HEAD, OPTIONS',
  '/docs': 'GET, HEAD, OPTIONS',
}

describe('the method of a request', () => {
  let api: TestApi
  let key: string

  before(async () => {
    api = await startApi()
    key = await issueAmpleKey(api)
  })
  after(() => api.stop())

  const connect = (target: string) =>
    exchangeOnce(api.url, head(`CONNECT ${target} HTTP/1.1`, ['Host: pets', `Authorization: Bearer ${key}`, 'Connection: close']))

  for (const [path, allow] of Object.entries(ALLOWED)) {
    const known = allow.split(', ')
    const unknown = METHODS.filter((method) => !known.includes(method))

    it(`${path} knows ${allow}; any other that Node knows is 405 with Allow`, async () => {
      expect(unknown).to.include.members(['TRACE', 'PROPFIND', 'CONNECT', 'DELETE', 'M-SEARCH'])
      for (const method of unknown) {
        const answer = method === 'CONNECT' ? await connect(path) : await api.send(path, { method, key })
        expectError(answer, 405, 'method_not_allowed')
        expect(answer.headers['allow'], method).to.equal(allow)
        expect(readQuotaHeaders(answer).remaining, method).to.be.above(0)
      }
      for (const method of known) expect((await api.send(path, { method, key })).status, method).to.be.oneOf([200, 204, 400, 503])
    })
  }

  for (const target of ['pets.example:443', 'x:1', '[::1]:443', '/v1/pets/1', '/v1/none', '*']) {
    it(`CONNECT ${target} is answered as any other method: a problem of the caller, not of ours`, async () => {
      const answer = await connect(target)
      expect(answer.status).to.be.within(400, 499)
      expectError(answer, answer.status, (JSON.parse(answer.text) as { code: string }).code)
      expect(answer.headers['connection']).to.equal('close')
    })
  }

  it('that nobody knows is a bad request', async () => {
    const answer = await exchangeOnce(api.url, head('FETCH /v1/pets HTTP/1.1', ['Host: pets']))
    expectError(answer, 400, 'bad_request')
  })

  it('is judged in capitals only', async () => {
    expectError(await exchangeOnce(api.url, head('get /v1/pets HTTP/1.1', ['Host: pets'])), 400, 'bad_request')
  })

  describe('HEAD', () => {
    for (const path of [
      '/v1/pets',
      '/v1/pets?limit=3&status=available',
      '/v1/pets/1',
      '/v1/store/orders?limit=2',
      '/livez',
      '/openapi.json',
      '/docs',
    ]) {
      it(`${path} has the headers of GET and no body`, async () => {
        const [got, headed] = [await api.send(path, { key }), await api.send(path, { method: 'HEAD', key })]
        expect(headed).to.include({ status: got.status, text: '' })
        expect(Object.keys(headed.headers)).to.have.members(Object.keys(got.headers))
        for (const name of ['content-type', 'content-length', 'content-security-policy', 'cache-control', 'x-stability', 'deprecation']) {
          expect(headed.headers[name], name).to.equal(got.headers[name])
        }
      })
    }

    for (const [path, secret, status] of [
      ['/v1/pets?limit=0', 'good', 400],
      ['/v1/pets', undefined, 401],
      ['/v1/pets', 'rubbish', 401],
      ['/v1/pets/999', 'good', 404],
      ['/v1/none', 'good', 404],
      ['/nowhere', undefined, 404],
    ] as const) {
      it(`${path} with ${secret ?? 'no'} key is ${status} like GET, without the body`, async () => {
        const sent = secret === undefined ? {} : { key: secret === 'good' ? key : secret }
        const [got, headed] = [await api.send(path, sent), await api.send(path, { ...sent, method: 'HEAD' })]
        expect(headed).to.include({ status, text: '' })
        expect(headed.headers['content-length']).to.equal(`${Buffer.byteLength(got.text)}`)
        expect(Object.keys(headed.headers)).to.have.members(Object.keys(got.headers))
      })
    }
  })

  describe('OPTIONS', () => {
    for (const [path, allow] of Object.entries(ALLOWED)) {
      it(`${path} is 204 with Allow, without a key`, async () => {
        const answer = await api.send(path, { method: 'OPTIONS' })
        expect(answer).to.include({ status: 204, text: '' })
        expect(answer.headers).to.include({ allow })
        expect(answer.headers).to.have.property('x-request-id')
      })
    }

    it('takes no notice of a bad key, Accept or query, and is no failed authentication', async () => {
      const left = async () => readQuotaHeaders(await api.send('/v1/pets', { method: 'OPTIONS' })).remaining
      const before = await left()
      expect((await api.send('/v1/pets?limit=0', { method: 'OPTIONS', key: 'rubbish', headers: { accept: 'text/html' } })).status).to.equal(
        204,
      )
      expect(await left()).to.equal(before)
    })

    it('of a browser is no permission: other origins are not served', async () => {
      const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
      for (const method of ['OPTIONS', 'GET']) {
        const names = Object.keys((await api.send('/v1/pets', { method, key, headers })).headers)
        expect(names.filter((name) => name.startsWith('access-control-'))).to.be.empty
      }
    })

    it('* returns 204 with every method that any path allows', async () => {
      const answer = await api.send('*', { method: 'OPTIONS' })
      expect(answer).to.include({ status: 204, text: '' })
      expect(answer.headers['allow']).to.equal('GET, HEAD, OPTIONS, POST')
    })

    for (const path of ['/v1/none', '/v1', '/v1/pets/', '/none']) {
      it(`${path} is 404, with quota headers as on every error`, async () => {
        const answer = await api.send(path, { method: 'OPTIONS' })
        expectError(answer, 404, 'not_found')
        expect(readQuotaHeaders(answer).limit).to.equal(30)
      })
    }
  })
})
