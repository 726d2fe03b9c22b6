import { expect } from 'chai'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import type { TestApi, TestResponse } from '../support/api.js'
import { startApi } from '../support/api.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import { until } from '../support/until.js'
import { inSequence, inParallel } from '../support/verdicts.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'
import { issueAmpleKey, withApi } from '../support/api.js'

const FAILURES_PER_MINUTE = 30
const LOOKUPS_IN_FLIGHT = 4
const secrets = new CryptoApiKeySecrets()

describe('the failure limit of an IP address', () => {
  let api: TestApi
  let key: string
  let apiKeys: WatchedApiKeyStore

  beforeEach(async () => {
    apiKeys = new WatchedApiKeyStore()
    api = await startApi({ doubles: { apiKeyStore: apiKeys } })
    key = await issueAmpleKey(api)
  })
  afterEach(() => api.stop())

  const withKey = (secret: string) => api.send('/v1/pets', { key: secret })
  const withTwoHeaders = () => api.send('/v1/pets', { headers: { authorization: [`Bearer ${key}`, `Bearer ${key}`] } })
  const unknownKey = () => secrets.generate().secret

  async function useUp(): Promise<void> {
    await inSequence(FAILURES_PER_MINUTE, async () => expectError(await withKey('rubbish'), 401, 'invalid_api_key'))
  }

  function expectLockedOut(response: TestResponse): void {
    expectError(response, 429, 'too_many_failed_authentications')
    expect(readQuotaHeaders(response)).to.include({ limit: FAILURES_PER_MINUTE, remaining: 0 })
    expect(readQuotaHeaders(response).resetSeconds * 1000).to.equal(api.clock.nowMs() + Number(response.headers['retry-after']) * 1000)
    expect(response.headers).to.not.have.property('www-authenticate')
  }

  it('counts malformed keys, unknown keys and two Authorization headers alike, and returns 429 to all of them once it is reached', async () => {
    for (let failure = 0; failure < FAILURES_PER_MINUTE; failure += 3) {
      for (const response of [await withKey('rubbish'), await withKey(unknownKey()), await withTwoHeaders()])
        expectError(response, 401, 'invalid_api_key')
    }
    for (const response of [await withKey('rubbish'), await withKey(unknownKey()), await withTwoHeaders()]) expectLockedOut(response)
  })

  it('does not count a missing key or a different scheme: after 1,000 of them, the full limit remains', async () => {
    await inSequence(500, async () => {
      for (const headers of [{}, { authorization: 'Basic dXNlcjpwYXNz' }]) {
        const response = await api.send('/v1/pets', { headers })
        expectError(response, 401, 'missing_api_key')
        expect(readQuotaHeaders(response)).to.include({ limit: FAILURES_PER_MINUTE, remaining: FAILURES_PER_MINUTE })
      }
    })
    await useUp()
  })

  it('returns 401 for a missing key, with 0 remaining, even after the limit is reached', async () => {
    await useUp()
    const response = await api.send('/v1/pets')
    expectError(response, 401, 'missing_api_key')
    expect(readQuotaHeaders(response)).to.include({ limit: FAILURES_PER_MINUTE, remaining: 0 })
    expect(response.headers).to.include({ 'www-authenticate': 'Bearer realm="petstore"' })
  })

  it(`returns 401 to ${FAILURES_PER_MINUTE} of 100 keys that are guessed at once, and allows at most 3 more lookups`, async () => {
    const release = apiKeys.hold()
    const guesses = inParallel(100, () => withKey(unknownKey()))
    await until('the lookups are in flight', () => apiKeys.queries.length >= LOOKUPS_IN_FLIGHT)
    release()
    const statuses = (await guesses).map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).to.have.length(FAILURES_PER_MINUTE)
    expect(statuses.filter((status) => status === 429)).to.have.length(100 - FAILURES_PER_MINUTE)
    expect(apiKeys.queries.length).to.be.within(FAILURES_PER_MINUTE, FAILURES_PER_MINUTE + LOOKUPS_IN_FLIGHT - 1)
  })

  it('is exact for 50 concurrent malformed keys', async () => {
    const statuses = (await inParallel(50, () => withKey('rubbish'))).map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).to.have.length(FAILURES_PER_MINUTE)
    expect(statuses.filter((status) => status === 429)).to.have.length(50 - FAILURES_PER_MINUTE)
  })

  it('does not affect 100 concurrent valid keys that are new to the replica', async () => {
    const issued = await inParallel(100, () => api.issueKey('free'))
    for (const response of await Promise.all(issued.map(({ secret }) => withKey(secret)))) expect(response).to.have.property('status', 200)
  })

  it('does not affect a key that the replica has verified, and locks out other valid keys until the minute ends', async () => {
    const { secret: newKey } = await api.issueKey('free')
    await withKey(key)
    await useUp()
    expectLockedOut(await withKey(newKey))
    expect(await withKey(key)).to.have.property('status', 200)
    expect(apiKeys.queries).to.have.lengthOf(1)
    api.clock.advanceSeconds(30)
    expect(await withKey(newKey)).to.have.property('status', 200)
  })

  it('ends exactly after Retry-After, and not a second earlier, even if requests continue in the meantime', async () => {
    api.clock.advanceMs(12_345)
    await useUp()
    const retryAfterSeconds = Number((await withKey('rubbish')).headers['retry-after'])
    expect(retryAfterSeconds).to.equal(18)
    api.clock.advanceSeconds(retryAfterSeconds - 1)
    await inSequence(40, async () => expectError(await withKey('rubbish'), 429, 'too_many_failed_authentications'))
    api.clock.advanceSeconds(1)
    const response = await withKey('rubbish')
    expectError(response, 401, 'invalid_api_key')
    expect(readQuotaHeaders(response).remaining).to.equal(FAILURES_PER_MINUTE - 1)
  })

  it('does not affect OPTIONS, health and the OpenAPI document', async () => {
    await useUp()
    const options = await api.send('/v1/pets', { method: 'OPTIONS' })
    expect(options.status).to.equal(204)
    expect(readQuotaHeaders(options)).to.include({ limit: FAILURES_PER_MINUTE, remaining: 0 })
    for (const path of ['/livez', '/openapi.json', '/docs']) expect((await api.send(path)).status).to.equal(200)
  })

  describe('with TRUSTED_PROXY_HOPS', () => {
    /** Sends one invalid key with each X-Forwarded-For in turn, and returns the remaining failures. */
    const remainingAfter = async (trustedProxyHops: number, ...forwarded: (string | string[])[]) => {
      const remaining: number[] = []
      await withApi({ config: { trustedProxyHops } }, async (own) => {
        for (const each of forwarded)
          remaining.push(readQuotaHeaders(await own.send('/v1/pets', { key: 'rubbish', headers: { 'x-forwarded-for': each } })).remaining)
      })
      return remaining
    }

    it('0 ignores X-Forwarded-For', async () => {
      expect(await remainingAfter(0, '198.51.100.1', '198.51.100.2', '2001:db8::1')).to.deep.equal([29, 28, 27])
    })

    it('1 counts for the last entry, and ignores the entries before it, which the client can choose', async () => {
      expect(await remainingAfter(1, '198.51.100.1', '198.51.100.2', '192.0.2.1, 198.51.100.1', '192.0.2.2, 198.51.100.1')).to.deep.equal([
        29, 29, 28, 27,
      ])
    })

    it('2 counts for the second entry from the right', async () => {
      expect(await remainingAfter(2, '198.51.100.1, 10.0.0.2', '198.51.100.1, 10.0.0.3', '198.51.100.2, 10.0.0.2')).to.deep.equal([
        29, 28, 29,
      ])
    })

    it('1 reads several header lines as one list', async () => {
      expect(await remainingAfter(1, ['192.0.2.1', '198.51.100.1'], ['192.0.2.2', '198.51.100.1'], '192.0.2.1')).to.deep.equal([29, 28, 29])
    })

    it('1 counts per /64 network of IPv6', async () => {
      expect(await remainingAfter(1, '2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:3::1')).to.deep.equal([29, 28, 29])
    })
  })
})
