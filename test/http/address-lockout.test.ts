import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import type { TestResponse, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'
import { issueAmpleKey, withApi } from '../support/api.js'

const FAILURES_PER_MINUTE = 30
const secrets = new CryptoApiKeySecrets()

describe('an address with too many failed authentications', () => {
  let api: TestApi
  let key: string
  let apiKeys: WatchedApiKeyStore

  beforeEach(async () => {
    apiKeys = new WatchedApiKeyStore()
    api = await startApi({ doubles: { apiKeyStore: apiKeys } })
    key = await issueAmpleKey(api)
  })
  afterEach(() => api.stop())

  const withoutKey = () => api.send('/v1/pets')
  const withKey = (secret: string) => api.send('/v1/pets', { key: secret })

  async function useUp(): Promise<void> {
    for (let failure = 0; failure < FAILURES_PER_MINUTE; failure += 1) expectError(await withKey('rubbish'), 401, 'invalid_api_key')
  }

  function expectLockedOut(answer: TestResponse): void {
    expectError(answer, 429, 'too_many_failed_authentications')
    expect(readQuotaHeaders(answer)).to.include({ limit: FAILURES_PER_MINUTE, remaining: 0 })
    expect(readQuotaHeaders(answer).resetSeconds * 1000).to.equal(api.clock.nowMs() + Number(answer.headers['retry-after']) * 1000)
    expect(answer.headers).to.not.have.property('www-authenticate')
  }

  it('gets 429 from the 31st invalid key on', async () => {
    await useUp()
    expectLockedOut(await withKey('rubbish'))
    expectLockedOut(await withKey(secrets.generate().secret))
    expectLockedOut(await api.send('/v1/pets', { headers: { authorization: [`Bearer ${key}`, `Bearer ${key}`] } }))
  })

  it('counts malformed and unknown keys and two Authorization headers alike', async () => {
    for (let failure = 0; failure < FAILURES_PER_MINUTE; failure += 3) {
      expectError(await withKey('rubbish'), 401, 'invalid_api_key')
      expectError(await withKey(secrets.generate().secret), 401, 'invalid_api_key')
      const authorization = [`Bearer ${key}`, `Bearer ${key}`]
      expectError(await api.send('/v1/pets', { headers: { authorization } }), 401, 'invalid_api_key')
    }
    expectLockedOut(await withKey('rubbish'))
  })

  it('does not count a missing key or another scheme: after 1,000 of them, the whole limit remains', async () => {
    for (let time = 0; time < 500; time += 1) {
      for (const headers of [{}, { authorization: 'Basic dXNlcjpwYXNz' }]) {
        const answer = await api.send('/v1/pets', { headers })
        expectError(answer, 401, 'missing_api_key')
        expect(readQuotaHeaders(answer)).to.include({ limit: FAILURES_PER_MINUTE, remaining: FAILURES_PER_MINUTE })
      }
    }
    await useUp()
  })

  it('still gets 401 without a key, with 0 remaining, because nothing is guessed', async () => {
    await useUp()
    const answer = await withoutKey()
    expectError(answer, 401, 'missing_api_key')
    expect(readQuotaHeaders(answer)).to.include({ limit: FAILURES_PER_MINUTE, remaining: 0 })
    expect(answer.headers).to.include({ 'www-authenticate': 'Bearer realm="petstore"' })
  })

  it('causes no key look-up any more', async () => {
    await withKey(secrets.generate().secret)
    expect(apiKeys.queries).to.have.lengthOf(1)
    for (let failure = 1; failure < FAILURES_PER_MINUTE; failure += 1) await withKey('rubbish')
    for (let time = 0; time < 5; time += 1) expectLockedOut(await withKey(secrets.generate().secret))
    expectLockedOut(await withKey(key))
    expect(apiKeys.queries).to.have.lengthOf(1)
  })

  it('gains nothing by guessing many keys at once: no more are looked up than may fail', async () => {
    // So that all of them come while the first ones are looked up.
    apiKeys.answering = () => setTimeout(100)
    const answers = await Promise.all(Array.from({ length: 100 }, () => withKey(secrets.generate().secret)))
    expect(answers.filter(({ status }) => status === 401)).to.have.length(FAILURES_PER_MINUTE)
    expect(answers.filter(({ status }) => status === 429)).to.have.length(100 - FAILURES_PER_MINUTE)
    expect(apiKeys.queries).to.have.lengthOf(FAILURES_PER_MINUTE)
  })

  it('with many good keys at once, each new here, is served with all of them', async () => {
    const issued = await Promise.all(Array.from({ length: 100 }, () => api.issueKey('free')))
    const answers = await Promise.all(issued.map(({ secret }) => withKey(secret)))
    expect(answers.every(({ status }) => status === 200)).to.equal(true)
  })

  it('causes no key look-up by what cannot be a key, ever', async () => {
    const mistyped = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')
    for (const secret of ['rubbish', mistyped, `${key.slice(0, -1)}!`, key.slice(0, -1), `${key}0`]) await withKey(secret)
    expect(apiKeys.queries).to.have.lengthOf(0)
  })

  it('goes on being served with a key that this replica has verified', async () => {
    await withKey(key)
    await useUp()
    expectLockedOut(await withKey('rubbish'))
    expect(await withKey(key)).to.have.property('status', 200)
  })

  it('goes on being served with such a key to the end of the minute', async () => {
    api.clock.advanceSeconds(-30)
    await withKey(key)
    await useUp()
    for (let second = 0; second < 60; second += 4) {
      expect(await withKey(key), `${second} s into the minute`).to.have.property('status', 200)
      api.clock.advanceSeconds(4)
    }
  })

  it('is refused with a good key that is new here, until the minute ends', async () => {
    await useUp()
    expectLockedOut(await withKey(key))
    api.clock.advanceSeconds(30)
    expect(await withKey(key)).to.have.property('status', 200)
  })

  it('waits for exactly Retry-After: one second less is not enough', async () => {
    api.clock.advanceMs(12_345)
    await useUp()
    const refused = await withKey('rubbish')
    const retryAfterSeconds = Number(refused.headers['retry-after'])
    expect(retryAfterSeconds).to.equal(18)
    api.clock.advanceSeconds(retryAfterSeconds - 1)
    expectError(await withKey('rubbish'), 429, 'too_many_failed_authentications')
    api.clock.advanceSeconds(1)
    const answer = await withKey('rubbish')
    expectError(answer, 401, 'invalid_api_key')
    expect(readQuotaHeaders(answer).remaining).to.equal(FAILURES_PER_MINUTE - 1)
  })

  it('does not wait longer because it goes on', async () => {
    await useUp()
    for (let time = 0; time < 100; time += 1) await withKey('rubbish')
    api.clock.advanceSeconds(30)
    expectError(await withKey('rubbish'), 401, 'invalid_api_key')
  })

  it('may still ask for OPTIONS, health and the document', async () => {
    await useUp()
    const options = await api.send('/v1/pets', { method: 'OPTIONS' })
    expect(options.status).to.equal(204)
    expect(readQuotaHeaders(options)).to.include({ limit: FAILURES_PER_MINUTE, remaining: 0 })
    for (const path of ['/livez', '/openapi.json', '/docs']) expect((await api.send(path)).status).to.equal(200)
  })

  it('concurrent failures are counted one by one', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => withKey('rubbish')))
    expect(answers.filter(({ status }) => status === 401)).to.have.length(FAILURES_PER_MINUTE)
    expect(answers.filter(({ status }) => status === 429)).to.have.length(50 - FAILURES_PER_MINUTE)
  })

  describe('behind TRUSTED_PROXY_HOPS', () => {
    /** What each of these X-Forwarded-For leaves its address with, sent one after the other. */
    const remainingAfter = async (trustedProxyHops: number, ...forwarded: (string | string[])[]) => {
      const remaining: number[] = []
      await withApi({ config: { trustedProxyHops } }, async (own) => {
        for (const each of forwarded)
          remaining.push(readQuotaHeaders(await own.send('/v1/pets', { key: 'rubbish', headers: { 'x-forwarded-for': each } })).remaining)
      })
      return remaining
    }

    it('0, X-Forwarded-For buys no fresh bucket', async () => {
      expect(await remainingAfter(0, '198.51.100.1', '198.51.100.2', '2001:db8::1')).to.deep.equal([29, 28, 27])
    })

    it('1, the last entry is the client, and what stands before it the client made up', async () => {
      expect(await remainingAfter(1, '198.51.100.1', '198.51.100.2', '192.0.2.1, 198.51.100.1', '192.0.2.2, 198.51.100.1')).to.deep.equal([
        29, 29, 28, 27,
      ])
    })

    it('2, the last entry but one is the client', async () => {
      expect(await remainingAfter(2, '198.51.100.1, 10.0.0.2', '198.51.100.1, 10.0.0.3', '198.51.100.2, 10.0.0.2')).to.deep.equal([
        29, 28, 29,
      ])
    })

    it('1, several header lines are one list', async () => {
      expect(await remainingAfter(1, ['192.0.2.1', '198.51.100.1'], ['192.0.2.2', '198.51.100.1'], '192.0.2.1')).to.deep.equal([29, 28, 29])
    })

    it('1, a /64 of IPv6 is one client', async () => {
      expect(await remainingAfter(1, '2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:3::1')).to.deep.equal([29, 28, 29])
    })
  })
})
