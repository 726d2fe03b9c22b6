import { expect } from 'chai'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { expectError, readRateLimitFields, readQuotaHeaders } from '../support/responses.js'
import type { TestResponse, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { issueAmpleKey } from '../support/api.js'

const secrets = new CryptoApiKeySecrets()

describe('authentication', () => {
  let api: TestApi
  let key: string

  beforeEach(async () => {
    api = await startApi()
    key = await issueAmpleKey(api)
  })
  afterEach(() => api.stop())

  const withAuthorization = (authorization: string | readonly string[]) => api.send('/v1/pets', { headers: { authorization } })

  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
    it(`accepts the scheme ${scheme}`, async () => expect(await withAuthorization(`${scheme} ${key}`)).to.have.property('status', 200))
  }

  for (const path of ['/v1/pets', '/v1/pets/1', '/v1/store/orders', '/v1/usage', '/v1', '/v1/', '/v1/none']) {
    it(`is required at ${path}, whether the path exists or not`, async () => {
      expectError(await api.send(path), 401, 'missing_api_key')
      expectError(await api.send(path, { key: 'rubbish' }), 401, 'invalid_api_key')
    })
  }

  it('is checked before method, Accept, media type and body', async () => {
    expectError(await api.send('/v1/pets', { method: 'TRACE', headers: { accept: 'text/html' } }), 401, 'missing_api_key')
    expectError(
      await api.send('/v1/pets', { method: 'POST', body: '{', headers: { 'content-type': 'text/plain' } }),
      401,
      'missing_api_key',
    )
  })

  describe('with a missing key', () => {
    it('returns 401 with a challenge that contains no error', async () => {
      const response = await api.send('/v1/pets')
      expectError(response, 401, 'missing_api_key')
      expect(response.headers['www-authenticate']).to.equal('Bearer realm="petstore"')
    })

    for (const authorization of ['Basic dXNlcjpwYXNz', 'Token abc', 'Digest username="x"', 'Bearer', 'Bearertoken', '']) {
      it(`treats "${authorization}" as a missing key`, async () => {
        const response = await withAuthorization(authorization)
        expectError(response, 401, 'missing_api_key')
        expect(response.headers['www-authenticate']).to.equal('Bearer realm="petstore"')
      })
    }

    it('ignores a key outside the Authorization header', async () => {
      for (const path of [`/v1/pets?api_key=${key}`, `/v1/pets?access_token=${key}`])
        expectError(await api.send(path), 401, 'missing_api_key')
      const headers = { 'x-api-key': key, cookie: `api_key=${key}`, 'proxy-authorization': `Bearer ${key}` }
      expectError(await api.send('/v1/pets', { headers }), 401, 'missing_api_key')
    })

    it('ignores a secret without the scheme, and does not repeat it in the response', async () => {
      const response = await withAuthorization(key)
      expectError(response, 401, 'missing_api_key')
      expect(response.text).to.not.contain(key)
    })
  })

  describe('with an invalid key', () => {
    async function invalidKeys(): Promise<Readonly<Record<string, string>>> {
      const otherDigit = key.endsWith('0') ? '1' : '0'
      const { secret: revoked, key: revokedKey } = await api.issueKey('pro')
      await api.parts.apiKeyAdmin.revoke(revokedKey.keyId, 'alice')
      return {
        unknown: secrets.generate().secret,
        malformed: 'rubbish',
        'of one character': 'x',
        'without a prefix': key.slice('pst_live_'.length),
        'with another prefix': key.replace('live', 'test'),
        'with a wrong checksum': key.slice(0, -1) + otherDigit,
        'with a mistyped character': `${key.slice(0, 15)}${key[15] === 'a' ? 'b' : 'a'}${key.slice(16)}`,
        'in upper case': key.toUpperCase(),
        'followed by other text': `${key} x`,
        'twice, with a comma': `${key},${key}`,
        'far too long': 'pst_live_'.padEnd(5000, 'x'),
        expired: (await api.issueKey('pro', { expiresAtMs: api.clock.nowMs() })).secret,
        revoked,
      }
    }

    it('returns 401 with a challenge that contains the error invalid_token', async () => {
      const response = await api.send('/v1/pets', { key: 'rubbish' })
      expectError(response, 401, 'invalid_api_key')
      expect(response.headers['www-authenticate']).to.equal('Bearer realm="petstore", error="invalid_token"')
    })

    it('returns the same body and headers, whatever is wrong with the key', async () => {
      const shape = ({ status, text, headers }: TestResponse) => {
        const varying = ['x-request-id', 'date', 'ratelimit', 'x-ratelimit-remaining']
        return { status, text, names: Object.keys(headers), values: Object.entries(headers).filter(([name]) => !varying.includes(name)) }
      }
      const expected = shape(await api.send('/v1/pets', { key: 'pst_live_' }))
      expect(expected.status).to.equal(401)
      for (const [what, secret] of Object.entries(await invalidKeys())) {
        expect(shape(await api.send('/v1/pets', { key: secret })), what).to.deep.equal(expected)
      }
    })

    it('rejects two Authorization headers, even if both contain the same valid key', async () => {
      expectError(await withAuthorization([`Bearer ${key}`, `Bearer ${key}`]), 401, 'invalid_api_key')
      expectError(await withAuthorization([`Bearer ${key}`, 'Basic dXNlcjpwYXNz']), 401, 'invalid_api_key')
      expectError(await withAuthorization(['Basic dXNlcjpwYXNz', `Bearer ${key}`]), 401, 'invalid_api_key')
    })

    it('rejects a key from the millisecond at which it expires, even if it was verified before', async () => {
      const { secret } = await api.issueKey('pro', { expiresAtMs: api.clock.nowMs() + 1000 })
      api.clock.advanceMs(999)
      expect(await api.send('/v1/pets', { key: secret })).to.have.property('status', 200)
      api.clock.advanceMs(1)
      expectError(await api.send('/v1/pets', { key: secret }), 401, 'invalid_api_key')
    })
  })

  describe('that fails', () => {
    it('reports the remaining failures of the IP address, which invalid keys reduce and missing ones do not', async () => {
      const responses = [
        await api.send('/v1/pets'),
        await api.send('/v1/pets', { key: 'rubbish' }),
        await api.send('/v1/store/orders', { key: 'rubbish' }),
        await api.send('/v1/store/orders'),
      ]
      expect(responses.map((response) => readQuotaHeaders(response).remaining)).to.deep.equal([30, 29, 28, 28])
      for (const response of responses) {
        const { limit, remaining, resetSeconds } = readQuotaHeaders(response)
        expect({ limit, resetSeconds }).to.deep.equal({ limit: 30, resetSeconds: api.clock.nowMs() / 1000 + 30 })
        const fields = { quota: 30, windowSeconds: 60, remaining, resetInSeconds: 30 }
        expect(readRateLimitFields(response)).to.deep.equal({ 'failed-authentications': fields })
      }
    })

    it('counts successes only toward the quota of the key, and failures only toward the limit of the IP address', async () => {
      for (let time = 0; time < 40; time += 1) await api.send('/v1/pets', { key })
      expect(readQuotaHeaders(await api.send('/v1/pets')).remaining).to.equal(30)
      const before = readQuotaHeaders(await api.send('/v1/pets', { key })).remaining
      await api.send('/v1/pets', { key: `${key}x` })
      expect(readQuotaHeaders(await api.send('/v1/pets', { key })).remaining).to.equal(before - 1)
    })
  })
})
