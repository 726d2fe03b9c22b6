import { expect } from 'chai'
import { expectError, readRateLimitFields, readQuotaHeaders } from '../support/responses.js'
import type { TestResponse, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { moveToMinuteStart, readRetryAfterSeconds, exhaustQuota } from '../support/quota-steps.js'

const STRIKES = 60

describe('a key that goes on sending after 429', () => {
  let api: TestApi
  let key: string

  beforeEach(async () => {
    api = await startApi()
    key = (await api.issueKey('enterprise', { limits: { minute: 5, day: 100_000 } })).secret
    await moveToMinuteStart(api, key)
  })
  afterEach(() => api.stop())

  const list = () => api.send('/v1/pets', { key })

  /** Brings all strikes but the last. Takes 1.5 s of the minute. */
  async function toTheBrink(): Promise<void> {
    await exhaustQuota(api, key)
    expectError(await list(), 429, 'rate_limit_exceeded')
    api.clock.advanceMs(1500)
    for (let strike = 1; strike < STRIKES; strike += 1) expectError(await list(), 429, 'rate_limit_exceeded')
  }

  function expectBanned(answer: TestResponse, untilMs: number): void {
    expectError(answer, 429, 'key_temporarily_banned')
    expect(readQuotaHeaders(answer)).to.deep.equal({ limit: 5, remaining: 0, resetSeconds: Math.ceil(untilMs / 1000) })
    expect(readRetryAfterSeconds(answer)).to.equal(Math.ceil((untilMs - api.clock.nowMs()) / 1000))
    for (const field of Object.values(readRateLimitFields(answer))) {
      expect(field).to.include({ remaining: 0, resetInSeconds: readRetryAfterSeconds(answer) })
    }
  }

  it('is banned for 60 seconds with the 60th strike, to the end of the ban', async () => {
    await toTheBrink()
    expectBanned(await list(), api.clock.nowMs() + 60_000)
  })

  it('is not banned for what was on its way when the limit was reached: rejections within a second are no strikes', async () => {
    await exhaustQuota(api, key)
    for (let refused = 0; refused < 2 * STRIKES; refused += 1) expectError(await list(), 429, 'rate_limit_exceeded')
    api.clock.advanceMs(1000)
    expectError(await list(), 429, 'rate_limit_exceeded')
  })

  it('is not banned for fewer strikes, minute after minute', async () => {
    for (let minute = 0; minute < 2; minute += 1) {
      await toTheBrink()
      api.clock.advanceSeconds(60)
      await moveToMinuteStart(api, key)
    }
    expect(await list()).to.have.property('status', 200)
  })

  it('is served after exactly Retry-After, and refused one second earlier', async () => {
    await toTheBrink()
    const seconds = readRetryAfterSeconds(await list())
    api.clock.advanceSeconds(seconds - 1)
    expectError(await list(), 429, 'key_temporarily_banned')
    api.clock.advanceSeconds(1)
    expect(await list()).to.have.property('status', 200)
  })

  it('does not make its ban longer by traffic', async () => {
    await toTheBrink()
    const endMs = api.clock.nowMs() + 60_000
    await list()
    for (let time = 0; time < 11; time += 1) {
      api.clock.advanceSeconds(5)
      for (let request = 0; request < 8; request += 1) expectBanned(await list(), endMs)
    }
    api.clock.advanceSeconds(5)
    expect(await list()).to.have.property('status', 200)
  })

  it('is banned twice as long the second time, and as long as the first when 24 hours have passed without a ban', async () => {
    await toTheBrink()
    expect(readRetryAfterSeconds(await list())).to.equal(60)
    api.clock.advanceSeconds(60)
    await moveToMinuteStart(api, key)
    await toTheBrink()
    expect(readRetryAfterSeconds(await list())).to.equal(120)
    api.clock.advanceSeconds(120 + 24 * 60 * 60)
    await moveToMinuteStart(api, key)
    await toTheBrink()
    expect(readRetryAfterSeconds(await list())).to.equal(60)
  })

  it('on a plan of more than 60 a minute, needs as many strikes as the plan has requests', async () => {
    const { secret } = await api.issueKey('enterprise', { limits: { minute: 100, day: 100_000 } })
    await moveToMinuteStart(api, secret)
    await exhaustQuota(api, secret)
    await api.send('/v1/pets', { key: secret })
    api.clock.advanceMs(1001)
    for (let strike = 1; strike < 100; strike += 1) expectError(await api.send('/v1/pets', { key: secret }), 429, 'rate_limit_exceeded')
    expectError(await api.send('/v1/pets', { key: secret }), 429, 'key_temporarily_banned')
  })

  it('may still ask for OPTIONS, health and the document while it is banned; other keys are served', async () => {
    await toTheBrink()
    await list()
    expect((await api.send('/v1/pets', { method: 'OPTIONS', key })).status).to.equal(204)
    for (const path of ['/livez', '/openapi.json']) expect((await api.send(path, { key })).status).to.equal(200)
    expect((await api.send('/v1/pets', { key: (await api.issueKey('free')).secret })).status).to.equal(200)
  })

  it('is told of the ban and nothing else: not of the path, not of the method', async () => {
    await toTheBrink()
    await list()
    for (const [method, path] of [
      ['GET', '/v1/none'],
      ['PUT', '/v1/pets'],
      ['POST', '/v1/pets'],
      ['GET', '/v1/pets/1'],
    ] as const) {
      expectError(await api.send(path, { method, key }), 429, 'key_temporarily_banned')
    }
  })
})
