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
    it(`takes the scheme spelt ${scheme}`, async () => expect(await withAuthorization(`${scheme} ${key}`)).to.have.property('status', 200))
  }

  for (const path of ['/v1/pets', '/v1/pets/1', '/v1/store/orders', '/v1', '/v1/', '/v1/none']) {
    it(`is asked for at ${path}, whether there is something or not`, async () => {
      expectError(await api.send(path), 401, 'missing_api_key')
      expectError(await api.send(path, { key: 'rubbish' }), 401, 'invalid_api_key')
    })
  }

  it('comes before every other check: method, Accept, media type, body', async () => {
    expectError(await api.send('/v1/pets', { method: 'TRACE', headers: { accept: 'text/html' } }), 401, 'missing_api_key')
    expectError(
      await api.send('/v1/pets', { method: 'POST', body: '{', headers: { 'content-type': 'text/plain' } }),
      401,
      'missing_api_key',
    )
  })

  describe('without a key', () => {
    it('is 401 with a challenge that names no error', async () => {
      const answer = await api.send('/v1/pets')
      expectError(answer, 401, 'missing_api_key')
      expect(answer.headers['www-authenticate']).to.equal('Bearer realm="petstore"')
    })

    for (const authorization of ['Basic dXNlcjpwYXNz', 'Token abc', 'Digest username="x"', 'Bearer', 'Bearertoken', '']) {
      it(`"${authorization}" is none`, async () => {
        const answer = await withAuthorization(authorization)
        expectError(answer, 401, 'missing_api_key')
        expect(answer.headers['www-authenticate']).to.equal('Bearer realm="petstore"')
      })
    }

    it('a key anywhere but in the Authorization header is none', async () => {
      for (const path of [`/v1/pets?api_key=${key}`, `/v1/pets?access_token=${key}`])
        expectError(await api.send(path), 401, 'missing_api_key')
      const headers = { 'x-api-key': key, cookie: `api_key=${key}`, 'proxy-authorization': `Bearer ${key}` }
      expectError(await api.send('/v1/pets', { headers }), 401, 'missing_api_key')
    })

    it('a secret without the scheme is none, and is not told back', async () => {
      const answer = await withAuthorization(key)
      expectError(answer, 401, 'missing_api_key')
      expect(answer.text).to.not.contain(key)
    })
  })

  describe('with an invalid key', () => {
    async function invalidKeys(): Promise<Readonly<Record<string, string>>> {
      const otherDigit = key.endsWith('0') ? '1' : '0'
      const { secret: revoked, key: revokedKey } = await api.issueKey('pro')
      await api.parts.apiKeyAdmin.revoke(revokedKey.keyId)
      return {
        unknown: secrets.generate().secret,
        malformed: 'rubbish',
        'of one character': 'x',
        'without a prefix': key.slice('pst_live_'.length),
        'with another prefix': key.replace('live', 'test'),
        'with a wrong checksum': key.slice(0, -1) + otherDigit,
        'with a mistyped character': `${key.slice(0, 15)}${key[15] === 'a' ? 'b' : 'a'}${key.slice(16)}`,
        'in another letter case': key.toUpperCase(),
        'with something behind it': `${key} x`,
        'with a comma and another': `${key},${key}`,
        'far too long': 'pst_live_'.padEnd(5000, 'x'),
        expired: (await api.issueKey('pro', { expiresAtMs: api.clock.nowMs() })).secret,
        revoked,
      }
    }

    it('is 401 with a challenge that says so', async () => {
      const answer = await api.send('/v1/pets', { key: 'rubbish' })
      expectError(answer, 401, 'invalid_api_key')
      expect(answer.headers['www-authenticate']).to.equal('Bearer realm="petstore", error="invalid_token"')
    })

    it('is answered alike whatever is wrong with it: same bytes, same headers', async () => {
      const shape = ({ status, text, headers }: TestResponse) => {
        const varying = ['x-request-id', 'date', 'ratelimit', 'x-ratelimit-remaining']
        return { status, text, names: Object.keys(headers), values: Object.entries(headers).filter(([name]) => !varying.includes(name)) }
      }
      const wanted = shape(await api.send('/v1/pets', { key: 'pst_live_' }))
      expect(wanted.status).to.equal(401)
      for (const [what, secret] of Object.entries(await invalidKeys())) {
        expect(shape(await api.send('/v1/pets', { key: secret })), what).to.deep.equal(wanted)
      }
    })

    it('two Authorization headers are none, even when both are the same good key', async () => {
      expectError(await withAuthorization([`Bearer ${key}`, `Bearer ${key}`]), 401, 'invalid_api_key')
      expectError(await withAuthorization([`Bearer ${key}`, 'Basic dXNlcjpwYXNz']), 401, 'invalid_api_key')
      expectError(await withAuthorization(['Basic dXNlcjpwYXNz', `Bearer ${key}`]), 401, 'invalid_api_key')
    })

    it('a key is good until the millisecond of its end, and not from there on, although it was verified before', async () => {
      const { secret } = await api.issueKey('pro', { expiresAtMs: api.clock.nowMs() + 1000 })
      api.clock.advanceMs(999)
      expect(await api.send('/v1/pets', { key: secret })).to.have.property('status', 200)
      api.clock.advanceMs(1)
      expectError(await api.send('/v1/pets', { key: secret }), 401, 'invalid_api_key')
    })
  })

  describe('that fails', () => {
    it('reports the remaining failures of the IP address, which invalid keys reduce and missing ones do not', async () => {
      const answers = [
        await api.send('/v1/pets'),
        await api.send('/v1/pets', { key: 'rubbish' }),
        await api.send('/v1/store/orders', { key: 'rubbish' }),
        await api.send('/v1/store/orders'),
      ]
      expect(answers.map((answer) => readQuotaHeaders(answer).remaining)).to.deep.equal([30, 29, 28, 28])
      for (const answer of answers) {
        const { limit, remaining, resetSeconds } = readQuotaHeaders(answer)
        expect({ limit, resetSeconds }).to.deep.equal({ limit: 30, resetSeconds: api.clock.nowMs() / 1000 + 30 })
        const fields = { quota: 30, windowSeconds: 60, remaining, resetInSeconds: 30 }
        expect(readRateLimitFields(answer)).to.deep.equal({ 'failed-authentications': fields })
      }
    })

    it('costs the address nothing when it succeeds, and the key nothing when another one failed', async () => {
      for (let time = 0; time < 40; time += 1) await api.send('/v1/pets', { key })
      expect(readQuotaHeaders(await api.send('/v1/pets')).remaining).to.equal(30)
      const before = readQuotaHeaders(await api.send('/v1/pets', { key })).remaining
      await api.send('/v1/pets', { key: `${key}x` })
      expect(readQuotaHeaders(await api.send('/v1/pets', { key })).remaining).to.equal(before - 1)
    })
  })
})
