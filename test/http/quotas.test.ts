import { expect } from 'chai'
import { readConfig } from '../../src/config.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { Limits } from '../../src/core/quota.js'
import { expectError, readQuotaHeaders, readRateLimitFields } from '../support/responses.js'
import type { Sent, TestResponse } from '../support/api.js'
import { useApiPerTest, withApi } from '../support/api.js'
import { exhaustQuota, moveToMinuteStart, readRetryAfterSeconds } from '../support/quota-steps.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'

const MIDNIGHT_SECONDS = Date.UTC(2026, 10, 21) / 1000

describe('the quota of a key', () => {
  let pets: UnreliablePetStore
  const api = useApiPerTest(() => {
    pets = new UnreliablePetStore()
    return { doubles: { pets } }
  })

  const issueKeyWith = async (limits: Limits) => (await api.issueKey('enterprise', { limits })).secret
  const list = (key: string) => api.send('/v1/pets', { key })

  async function sendMany(count: number, send: () => Promise<TestResponse>): Promise<TestResponse[]> {
    const responses: TestResponse[] = []
    for (let sent = 0; sent < count; sent += 1) responses.push(await send())
    return responses
  }

  /** Expects that the key is rejected until `Retry-After` has passed, and not a second longer. */
  async function expectExactRetryAfter(key: string, code: string): Promise<void> {
    const rejected = await list(key)
    expectError(rejected, 429, code)
    api.clock.advanceSeconds(readRetryAfterSeconds(rejected) - 1)
    expectError(await list(key), 429, code)
    api.clock.advanceSeconds(1)
    expect(await list(key)).to.have.property('status', 200)
  }

  it('on Free admits 60 requests per minute, counts down, and rejects the next one, while another key is served', async () => {
    const { secret: key } = await api.issueKey('free')
    await moveToMinuteStart(api, key)
    const responses = await sendMany(61, () => list(key))
    expect(responses.map(({ status }) => status)).to.deep.equal([...new Array(60).fill(200), 429])
    const remaining = responses.map((response) => readQuotaHeaders(response).remaining)
    expect(remaining).to.deep.equal([...Array.from({ length: 60 }, (_, sent) => 59 - sent), 0])

    const rejected = responses.at(-1) ?? expect.fail()
    expectError(rejected, 429, 'rate_limit_exceeded')
    expect(readQuotaHeaders(rejected)).to.deep.equal({ limit: 60, remaining: 0, resetSeconds: api.clock.nowMs() / 1000 + 60 })
    expect(readRetryAfterSeconds(rejected)).to.equal(60)
    expect(readRateLimitFields(rejected)['minute']).to.deep.equal({ quota: 60, windowSeconds: 60, remaining: 0, resetInSeconds: 60 })
    expect(await list((await api.issueKey('free')).secret)).to.have.property('status', 200)
  })

  it('of the minute is available again after exactly Retry-After', async () => {
    const key = await issueKeyWith({ minute: 5, day: 1000 })
    await moveToMinuteStart(api, key)
    await exhaustQuota(api, key)
    api.clock.advanceMs(12_345)
    await expectExactRetryAfter(key, 'rate_limit_exceeded')
  })

  it('of the day is available again at midnight UTC, after exactly Retry-After', async () => {
    const key = await issueKeyWith({ minute: 100, day: 3 })
    await exhaustQuota(api, key)
    expect(readQuotaHeaders(await list(key))).to.deep.equal({ limit: 3, remaining: 0, resetSeconds: MIDNIGHT_SECONDS })
    await expectExactRetryAfter(key, 'daily_quota_exceeded')
    expect(api.clock.nowMs()).to.equal(MIDNIGHT_SECONDS * 1000)
  })

  for (const [plan, ownLimits, minuteLimit, dayLimit] of [
    ['free', undefined, 60, 1000],
    ['pro', undefined, 300, 10_000],
    ['business', undefined, 1000, 100_000],
    ['enterprise', { minute: 3, day: 5 }, 3, 5],
    ['free', { minute: 2, day: 1000 }, 2, 1000],
  ] as const) {
    it(`is ${minuteLimit} per minute and ${dayLimit} per day on ${plan}${ownLimits ? ' with its own limits' : ''}`, async () => {
      const { secret } = await api.issueKey(plan, ownLimits ? { limits: ownLimits } : {})
      const { minute, day } = readRateLimitFields(await list(secret))
      expect(minute).to.include({ quota: minuteLimit, windowSeconds: 60, remaining: minuteLimit - 1 })
      expect(day).to.include({ quota: dayLimit, windowSeconds: 86_400, remaining: dayLimit - 1 })
    })
  }

  it('in shadow mode rejects nothing, and the headers and metrics report what enforcement would have done', async () => {
    const { plans } = readConfig({})
    const shadow = { ...plans, plans: { ...plans.plans, free: { ...plans.plans.free, mode: 'shadow' as const } } }
    await withApi({ config: { plans: shadow } }, async (own) => {
      const { secret } = await own.issueKey('free')
      await moveToMinuteStart(own, secret)
      const responses = await sendMany(70, () => own.send('/v1/pets', { key: secret }))
      expect(responses.every(({ status }) => status === 200)).to.equal(true)
      const last = responses.at(-1) ?? expect.fail()
      expect(readQuotaHeaders(last)).to.include({ limit: 60, remaining: 0 })
      expect(last.headers).to.not.have.property('retry-after')
      const metrics = await own.parts.metrics.registry.metrics()
      expect(metrics).to.contain('petstore_quota_verdicts_total{plan="free",verdict="shadow"} 10')
    })
  })

  describe('after 60 strikes', () => {
    let key: string
    let endMs: number

    beforeEach(async () => {
      key = await issueKeyWith({ minute: 5, day: 100_000 })
      await moveToMinuteStart(api, key)
      await exhaustQuota(api, key)
      expectError(await list(key), 429, 'rate_limit_exceeded')
      api.clock.advanceMs(1500)
      for (const rejected of await sendMany(59, () => list(key))) expectError(rejected, 429, 'rate_limit_exceeded')
      endMs = api.clock.nowMs() + 60_000
    })

    it('is banned for 60 seconds, with the end of the ban in all headers, and then served after exactly Retry-After', async () => {
      for (const rejected of await sendMany(8, () => list(key))) {
        expectError(rejected, 429, 'key_temporarily_banned')
        expect(readQuotaHeaders(rejected)).to.deep.equal({ limit: 5, remaining: 0, resetSeconds: Math.ceil(endMs / 1000) })
        expect(readRetryAfterSeconds(rejected)).to.equal(60)
        const fields = Object.values(readRateLimitFields(rejected))
        for (const field of fields) expect(field).to.include({ remaining: 0, resetInSeconds: 60 })
      }
      await expectExactRetryAfter(key, 'key_temporarily_banned')
    })

    it('is banned once in the metrics, which count rejections by the window that the client has to wait for', async () => {
      await sendMany(8, () => list(key))
      const metrics = (await api.parts.metrics.registry.metrics()).split('\n')
      expect(metrics).to.include('petstore_bans_total 1')
      const verdicts = metrics.filter((line) => line.startsWith('petstore_quota_verdicts_total{') && !line.includes('admitted'))
      expect(verdicts).to.have.members([
        'petstore_quota_verdicts_total{plan="enterprise",verdict="exhausted",window="minute"} 60',
        'petstore_quota_verdicts_total{plan="enterprise",verdict="banned"} 8',
      ])
    })

    it('is rejected for the ban whatever the method and path, but OPTIONS, health and the document are served', async () => {
      await list(key)
      for (const [method, path] of [
        ['GET', '/v1/none'],
        ['PUT', '/v1/pets'],
        ['POST', '/v1/pets'],
        ['GET', '/v1/pets/1'],
      ] as const) {
        expectError(await api.send(path, { method, key }), 429, 'key_temporarily_banned')
      }
      expect((await api.send('/v1/pets', { method: 'OPTIONS', key })).status).to.equal(204)
      for (const path of ['/livez', '/openapi.json']) expect((await api.send(path, { key })).status).to.equal(200)
      expect((await list((await api.issueKey('free')).secret)).status).to.equal(200)
    })
  })

  describe('is charged', () => {
    const getCost = async (path: string, sent: Sent = {}, status?: number) => {
      const before = readQuotaHeaders(await api.call('/v1/pets')).remaining
      const response = await api.call(path, sent)
      if (status !== undefined) expect({ ...response }).to.have.property('status', status)
      return before - readQuotaHeaders(await api.call('/v1/pets')).remaining - 1
    }
    const large = { body: ' '.repeat(70_000), headers: { 'content-type': 'application/json' } }

    const charged: [string, string, Sent, number][] = [
      ['a successful request', '/v1/pets', {}, 200],
      ['HEAD', '/v1/pets', { method: 'HEAD' }, 200],
      ['a new pet', '/v1/pets', { method: 'POST', body: { name: 'Rex', categoryId: 7 } }, 201],
      ['an invalid parameter', '/v1/pets?limit=0', {}, 400],
      ['an invalid cursor', '/v1/pets?cursor=x', {}, 400],
      ['a missing body', '/v1/pets', { method: 'POST' }, 400],
      ['an unknown pet', '/v1/pets/999', {}, 404],
      ['an unknown path', '/v1/none', {}, 404],
      ['a method that is not allowed', '/v1/pets', { method: 'DELETE' }, 405],
      ['a response type that is not acceptable', '/v1/pets', { headers: { accept: 'text/html' } }, 406],
      ['a body that is too large', '/v1/pets', { method: 'POST', ...large }, 413],
      ['an unsupported media type', '/v1/pets', { method: 'POST', body: 'x' }, 415],
      ['an unknown expectation', '/v1/pets', { headers: { expect: 'a miracle' } }, 417],
    ]
    for (const [what, path, sent, status] of charged) {
      it(`one request for ${what} (${status})`, async () => expect(await getCost(path, sent, status)).to.equal(1))
    }

    it('nothing for OPTIONS, health, the document and the docs, with a key or without', async () => {
      expect(await getCost('/v1/pets', { method: 'OPTIONS' }, 204)).to.equal(0)
      for (const path of ['/livez', '/openapi.json', '/openapi.yaml', '/docs']) expect(await getCost(path, {}, 200)).to.equal(0)
    })

    it('nothing for a 401', async () => {
      const authorization = [`Bearer ${api.key}`, `Bearer ${api.key}`]
      expect(await getCost('/v1/pets', { headers: { authorization } }, 401)).to.equal(0)
      expect(await getCost('/v1/pets', { key: `${api.key}x` }, 401)).to.equal(0)
    })

    for (const [status, failure] of [
      [500, new TypeError('unexpected')],
      [503, new StoreUnavailable('timed out')],
    ] as const) {
      it(`nothing for a ${status}: the request is refunded, which its own headers report, even if it was the last one`, async () => {
        const key = await issueKeyWith({ minute: 2, day: 10 })
        await moveToMinuteStart(api, key)
        const before = await list(key)
        pets.failure = failure
        for (const failed of await sendMany(5, () => list(key))) {
          expect(failed.status).to.equal(status)
          expect(readQuotaHeaders(failed)).to.deep.equal(readQuotaHeaders(before))
          expect(readRateLimitFields(failed)).to.deep.equal(readRateLimitFields(before))
        }
        pets.failure = undefined
        expect(readQuotaHeaders(await list(key)).remaining).to.equal(0)
      })
    }
  })
})
