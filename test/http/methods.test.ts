import { METHODS } from 'node:http'
import { expect } from 'chai'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import { useApi } from '../support/api.js'
import { exchangeOnce, head } from '../support/raw-socket.js'

const READ_ONLY = 'GET, HEAD, OPTIONS'
const ALLOWED: Readonly<Record<string, string>> = {
  '/v1/pets': `${READ_ONLY}, POST`,
  '/v1/pets/1': READ_ONLY,
  '/v1/store/orders': READ_ONLY,
  '/v1/usage': READ_ONLY,
  '/livez': READ_ONLY,
  '/readyz': READ_ONLY,
  '/openapi.json': READ_ONLY,
  '/openapi.yaml': READ_ONLY,
  '/docs': READ_ONLY,
}

describe('the method of a request', () => {
  const api = useApi()

  const connect = (target: string) =>
    exchangeOnce(api.url, head(`CONNECT ${target} HTTP/1.1`, ['Host: pets', `Authorization: Bearer ${api.key}`, 'Connection: close']))

  for (const [path, allow] of Object.entries(ALLOWED)) {
    const allowed = allow.split(', ')

    it(`must be one of ${allow} for ${path}: every other one gets 405 with Allow`, async () => {
      const others = METHODS.filter((method) => !allowed.includes(method))
      expect(others).to.include.members(['TRACE', 'PROPFIND', 'CONNECT', 'DELETE', 'M-SEARCH'])
      for (const method of others) {
        const response = method === 'CONNECT' ? await connect(path) : await api.call(path, { method })
        expectError(response, 405, 'method_not_allowed')
        expect(response.headers['allow'], method).to.equal(allow)
        expect(readQuotaHeaders(response).remaining, method).to.be.above(0)
      }
      for (const method of allowed) expect((await api.call(path, { method })).status, method).to.be.oneOf([200, 204, 400, 503])
    })

    it(`may be OPTIONS for ${path}, without a key: 204 with Allow`, async () => {
      const response = await api.send(path, { method: 'OPTIONS' })
      expect(response).to.include({ status: 204, text: '' })
      expect(response.headers).to.include({ allow }).and.to.have.property('x-request-id')
    })
  }

  for (const target of ['pets.example:443', 'x:1', '[::1]:443', '/v1/pets/1', '/v1/none', '*']) {
    it(`returns a client error for CONNECT ${target}, and closes the connection`, async () => {
      const response = await connect(target)
      expect(response.status).to.be.within(400, 499)
      expectError(response, response.status, (JSON.parse(response.text) as { code: string }).code)
      expect(response.headers['connection']).to.equal('close')
    })
  }

  for (const method of ['FETCH', 'get']) {
    it(`returns 400 for the unknown method ${method}`, async () =>
      void expectError(await exchangeOnce(api.url, head(`${method} /v1/pets HTTP/1.1`, ['Host: pets'])), 400, 'bad_request'))
  }

  for (const [path, status, key] of [
    ['/v1/pets', 200],
    ['/v1/pets?limit=3&status=available', 200],
    ['/v1/pets/1', 200],
    ['/v1/store/orders?limit=2', 200],
    ['/v1/usage', 200],
    ['/v1/usage?x=1', 400],
    ['/livez', 200],
    ['/openapi.json', 200],
    ['/docs', 200],
    ['/v1/pets?limit=0', 400],
    ['/v1/pets', 401, ''],
    ['/v1/pets', 401, 'rubbish'],
    ['/v1/pets/999', 404],
    ['/v1/none', 404],
    ['/nowhere', 404],
  ] as const) {
    it(`may be HEAD for ${path}: ${status} with the headers of GET${key === undefined ? '' : ` and the key "${key}"`}, without a body`, async () => {
      const sent = key === undefined ? {} : { key }
      const [get, headed] = [await api.call(path, sent), await api.call(path, { ...sent, method: 'HEAD' })]
      expect(headed).to.include({ status, text: '' })
      expect(Object.keys(headed.headers)).to.have.members(Object.keys(get.headers))
      if (get.headers['content-length'] !== undefined) expect(get.headers['content-length']).to.equal(`${Buffer.byteLength(get.text)}`)
      const names = 'content-type content-length content-security-policy cache-control x-stability deprecation sunset'
      for (const name of names.split(' ')) expect(headed.headers[name], name).to.equal(get.headers[name])
    })
  }

  describe('OPTIONS', () => {
    it('ignores an invalid key, Accept and the query, and does not count as a failed authentication', async () => {
      const getRemaining = async () => readQuotaHeaders(await api.send('/v1/pets', { method: 'OPTIONS' })).remaining
      const before = await getRemaining()
      const response = await api.send('/v1/pets?limit=0', { method: 'OPTIONS', key: 'rubbish', headers: { accept: 'text/html' } })
      expect(response.status).to.equal(204)
      expect(await getRemaining()).to.equal(before)
    })

    it('allows no other origin', async () => {
      const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
      for (const method of ['OPTIONS', 'GET']) {
        const names = Object.keys((await api.call('/v1/pets', { method, headers })).headers)
        expect(names.filter((name) => name.startsWith('access-control-'))).to.be.empty
      }
    })

    it('* returns 204 with every method that any path allows', async () => {
      const response = await api.send('*', { method: 'OPTIONS' })
      expect(response).to.include({ status: 204, text: '' })
      expect(response.headers['allow']).to.equal('GET, HEAD, OPTIONS, POST')
    })

    for (const path of ['/v1/none', '/v1', '/v1/pets/', '/none']) {
      it(`${path} returns 404 with quota headers`, async () => {
        const response = await api.send(path, { method: 'OPTIONS' })
        expectError(response, 404, 'not_found')
        expect(readQuotaHeaders(response).limit).to.equal(30)
      })
    }
  })
})
