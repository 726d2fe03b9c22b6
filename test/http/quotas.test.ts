import { expect } from 'chai'
import { readConfig } from '../../src/config.js'
import type { Limits } from '../../src/core/quota.js'
import { expectError, readRateLimitFields, readQuotaHeaders } from '../support/responses.js'
import type { TestResponse, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { moveToMinuteStart, readRetryAfterSeconds, exhaustQuota } from '../support/quota-steps.js'
import { withApi } from '../support/api.js'

const MIDNIGHT_SECONDS = Date.UTC(2026, 10, 21) / 1000

describe('the quota of a key', () => {
  let api: TestApi

  beforeEach(async () => {
    api = await startApi()
  })
  afterEach(() => api.stop())

  const keyWith = async (limits: Limits) => (await api.issueKey('enterprise', { limits })).secret
  const list = (key: string) => api.send('/v1/pets', { key })

  describe('on the free plan', () => {
    let key: string

    beforeEach(async () => {
      key = (await api.issueKey('free')).secret
      await moveToMinuteStart(api, key)
    })

    it('serves 60 requests a minute, counting down, and refuses the 61st', async () => {
      const answers: TestResponse[] = []
      for (let request = 0; request < 61; request += 1) answers.push(await list(key))
      expect(answers.map(({ status }) => status)).to.deep.equal([...new Array(60).fill(200), 429])
      expect(answers.map((answer) => readQuotaHeaders(answer).remaining)).to.deep.equal([
        ...Array.from({ length: 60 }, (_, sent) => 59 - sent),
        0,
      ])
    })

    it('says on the rejection which limit it was, when it ends and how long to wait', async () => {
      await exhaustQuota(api, key)
      const refused = await list(key)
      expectError(refused, 429, 'rate_limit_exceeded')
      expect(readQuotaHeaders(refused)).to.deep.equal({ limit: 60, remaining: 0, resetSeconds: api.clock.nowMs() / 1000 + 60 })
      expect(refused.headers['retry-after']).to.equal('60')
      expect(readRateLimitFields(refused)['minute']).to.deep.equal({ quota: 60, windowSeconds: 60, remaining: 0, resetInSeconds: 60 })
    })

    it('of 100 concurrent requests serves exactly 60', async () => {
      const answers = await Promise.all(Array.from({ length: 100 }, () => list(key)))
      expect(answers.filter(({ status }) => status === 200)).to.have.length(60)
      expect(answers.filter(({ status }) => status === 429)).to.have.length(40)
    })

    it('loses nothing of its day to requests that the minute refuses', async () => {
      const dayLeft = async () => readRateLimitFields(await list(key))['day']?.remaining ?? Number.NaN
      const before = await dayLeft()
      await exhaustQuota(api, key)
      for (let refused = 0; refused < 20; refused += 1) expect(await dayLeft()).to.equal(before - 59)
    })

    it('is its own: another key is served meanwhile', async () => {
      await exhaustQuota(api, key)
      expect((await list((await api.issueKey('free')).secret)).status).to.equal(200)
    })
  })

  for (const laterMs of [0, 1, 999, 1000, 1001, 30_500, 58_999, 59_001]) {
    it(`refused ${laterMs} ms into a minute, is served after exactly Retry-After, and refused one second earlier`, async () => {
      const key = await keyWith({ minute: 5, day: 1000 })
      await moveToMinuteStart(api, key)
      await exhaustQuota(api, key)
      api.clock.advanceMs(laterMs)
      const seconds = readRetryAfterSeconds(await list(key))
      api.clock.advanceSeconds(seconds - 1)
      expectError(await list(key), 429, 'rate_limit_exceeded')
      api.clock.advanceSeconds(1)
      expect(await list(key)).to.have.property('status', 200)
    })
  }

  for (const [plan, limits] of Object.entries({ free: [60, 1000], pro: [300, 10_000], business: [1000, 100_000] } as const)) {
    it(`on the plan ${plan} is ${limits[0]} a minute and ${limits[1]} a day`, async () => {
      const { secret } = await api.issueKey(plan as 'free' | 'pro' | 'business')
      const { minute, day } = readRateLimitFields(await list(secret))
      expect([minute?.quota, day?.quota, minute?.windowSeconds, day?.windowSeconds]).to.deep.equal([...limits, 60, 86_400])
    })
  }

  it('on the enterprise plan is what the key was issued with', async () => {
    const key = await keyWith({ minute: 3, day: 5 })
    await moveToMinuteStart(api, key)
    const { minute, day } = readRateLimitFields(await list(key))
    expect([minute?.quota, day?.quota]).to.deep.equal([3, 5])
  })

  it('of a key with limits of its own is not that of its plan', async () => {
    const { secret } = await api.issueKey('free', { limits: { minute: 2, day: 1000 } })
    await moveToMinuteStart(api, secret)
    expect([await list(secret), await list(secret), await list(secret)].map(({ status }) => status)).to.deep.equal([200, 200, 429])
  })

  it('of the day, used up, is refused until midnight UTC: exactly Retry-After, and not one second less', async () => {
    const key = await keyWith({ minute: 100, day: 3 })
    for (let request = 0; request < 3; request += 1) await list(key)
    const refused = await list(key)
    expectError(refused, 429, 'daily_quota_exceeded')
    expect(readQuotaHeaders(refused)).to.deep.equal({ limit: 3, remaining: 0, resetSeconds: MIDNIGHT_SECONDS })
    api.clock.advanceSeconds(readRetryAfterSeconds(refused) - 1)
    expectError(await list(key), 429, 'daily_quota_exceeded')
    api.clock.advanceSeconds(1)
    expect(await list(key)).to.have.property('status', 200)
    expect(api.clock.nowMs()).to.equal(MIDNIGHT_SECONDS * 1000)
  })

  it('used up in both windows is told by the one that ends last', async () => {
    const key = await keyWith({ minute: 3, day: 3 })
    await exhaustQuota(api, key)
    const refused = await list(key)
    expectError(refused, 429, 'daily_quota_exceeded')
    expect(readQuotaHeaders(refused).resetSeconds).to.equal(MIDNIGHT_SECONDS)
  })

  it('is told by the window with the fewest requests left; a tie goes to the day', async () => {
    const limitTold = async (limits: Limits) => readQuotaHeaders(await list(await keyWith(limits))).limit
    expect(await limitTold({ minute: 10, day: 11 })).to.equal(10)
    expect(await limitTold({ minute: 11, day: 10 })).to.equal(10)
    const tied = await list(await keyWith({ minute: 10, day: 10 }))
    expect(readQuotaHeaders(tied).resetSeconds).to.equal(MIDNIGHT_SECONDS)
  })

  it('is told twice, by the triple and by the IETF fields, and both agree', async () => {
    const key = await keyWith({ minute: 4, day: 6 })
    for (let request = 0; request < 30; request += 1) {
      const answer = await list(key)
      const { limit, remaining, resetSeconds } = readQuotaHeaders(answer)
      const fields = readRateLimitFields(answer)
      expect(Object.keys(fields)).to.deep.equal(['minute', 'day'])
      const resetInSeconds = Math.ceil(resetSeconds - api.clock.nowMs() / 1000)
      const agreeing = Object.values(fields).filter(
        (each) => each.quota === limit && each.remaining === remaining && each.resetInSeconds === resetInSeconds,
      )
      expect(agreeing).to.not.be.empty
      expect(remaining).to.equal(Math.min(...Object.values(fields).map((each) => each.remaining)))
      if (answer.status === 429) expect(answer.headers['retry-after']).to.equal(`${resetInSeconds}`)
      api.clock.advanceMs(7_777)
    }
  })

  it('in shadow mode lets everything pass, and reports what enforcement would have done', async () => {
    const { plans } = readConfig({})
    const shadow = { ...plans, plans: { ...plans.plans, free: { ...plans.plans.free, mode: 'shadow' as const } } }
    await withApi({ config: { plans: shadow } }, async (own) => {
      const { secret } = await own.issueKey('free')
      await moveToMinuteStart(own, secret)
      const answers: TestResponse[] = []
      for (let request = 0; request < 70; request += 1) answers.push(await own.send('/v1/pets', { key: secret }))
      expect(answers.every(({ status }) => status === 200)).to.equal(true)
      expect(readQuotaHeaders(answers.at(-1) as TestResponse)).to.include({ limit: 60, remaining: 0 })
      expect(answers.at(-1)?.headers).to.not.have.property('retry-after')
      const metrics = await own.parts.metrics.registry.metrics()
      expect(metrics).to.contain('petstore_quota_verdicts_total{plan="free",verdict="shadow"} 10')
    })
  })
})
