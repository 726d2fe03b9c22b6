import { expect } from 'chai'
import { expectError, readQuotaHeaders, readRateLimitFields } from '../support/responses.js'
import type { Sent } from '../support/api.js'
import { useApiPerTest } from '../support/api.js'
import { exhaustQuota, moveToMinuteStart } from '../support/quota-steps.js'

const MIDNIGHT = '2026-11-21T00:00:00.000Z'

describe('GET /v1/usage', () => {
  const api = useApiPerTest()

  const getUsage = (key: string, sent: Sent = {}) => api.send('/v1/usage', { key, ...sent })
  const list = (key: string) => api.send('/v1/pets', { key })

  /** Sends requests with the exhausted key until it is banned. */
  async function ban(key: string): Promise<void> {
    for (let round = 0; round < 2; round++) {
      api.clock.advanceMs(1_001)
      for (let request = 0; request < 65; request++) if ((await list(key)).json.code === 'key_temporarily_banned') return
    }
    throw new Error('The key was not banned')
  }

  it('returns the plan, both windows and no ban, with X-Stability', async () => {
    const { secret } = await api.issueKey('free')
    await moveToMinuteStart(api, secret)
    await list(secret)
    const response = await getUsage(secret)
    expect(response).to.have.property('status', 200)
    expect(response.headers).to.include({ 'x-stability': 'beta', 'content-type': 'application/json' })
    const resetsAt = new Date(api.clock.nowMs() + 60_000).toISOString()
    const { minute, day, ...rest } = response.json
    expect(rest).to.deep.equal({ plan: 'free', ban: null })
    expect(minute).to.deep.equal({ limit: 60, used: minute.used, remaining: 60 - minute.used, resetsAt })
    expect(day).to.deep.equal({ limit: 1000, used: day.used, remaining: 1000 - day.used, resetsAt: MIDNIGHT })
    expect(minute.used).to.be.above(0)
  })

  it('returns 0 used for a new key', async () => {
    const { secret } = await api.issueKey('pro')
    const { json } = await getUsage(secret)
    expect(json).to.deep.nested.include({ plan: 'pro', 'minute.used': 0, 'minute.remaining': 300, 'day.used': 0 })
    expect(Date.parse(json.minute.resetsAt) - api.clock.nowMs()).to.be.within(1, 60_000)
  })

  it('has quota headers with the values of the body', async () => {
    const { secret } = await api.issueKey('enterprise', { limits: { minute: 5, day: 50 } })
    await list(secret)
    const response = await getUsage(secret)
    const { minute, day } = response.json
    expect(readQuotaHeaders(response)).to.deep.equal({ limit: 5, remaining: 4, resetSeconds: Date.parse(minute.resetsAt) / 1000 })
    const fields = readRateLimitFields(response)
    expect([fields['minute']?.remaining, fields['day']?.remaining]).to.deep.equal([minute.remaining, day.remaining])
  })

  it('is never charged, whether it succeeds or not', async () => {
    const { secret } = await api.issueKey('free')
    await list(secret)
    const used = (await getUsage(secret)).json.day.used
    const requests: readonly [string, Sent, number][] = [
      ['/v1/usage', {}, 200],
      ['/v1/usage', { method: 'HEAD' }, 200],
      ['/v1/usage?limit=1', {}, 400],
      ['/v1/usage', { headers: { accept: 'text/html' } }, 406],
      ['/v1/usage', { headers: { expect: '200-ok' } }, 417],
    ]
    for (const [path, sent, status] of requests) expect((await api.send(path, { key: secret, ...sent })).status, path).to.equal(status)
    api.clock.advanceMs(1_000)
    expect((await getUsage(secret)).json.day.used).to.equal(used)
  })

  it('works while the key is exhausted, and does not lead to a ban', async () => {
    const { secret } = await api.issueKey('enterprise', { limits: { minute: 100, day: 3 } })
    await exhaustQuota(api, secret)
    for (let request = 0; request < 150; request++) {
      api.clock.advanceMs(100)
      expect(await getUsage(secret)).to.deep.include({ status: 200 })
    }
    const { json } = await getUsage(secret)
    expect(json.day).to.deep.equal({ limit: 3, used: 3, remaining: 0, resetsAt: MIDNIGHT })
    expect(json.ban).to.equal(null)
  })

  it('works while the key is banned: it reports the end of the ban, the actual ends of the windows, and no remaining requests', async () => {
    const { secret } = await api.issueKey('enterprise', { limits: { minute: 2, day: 1000 } })
    await moveToMinuteStart(api, secret)
    const minuteEndsMs = api.clock.nowMs() + 60_000
    await exhaustQuota(api, secret)
    await ban(secret)
    const response = await getUsage(secret)
    expect(response).to.have.property('status', 200)
    expect(response.json).to.deep.equal({
      plan: 'enterprise',
      minute: { limit: 2, used: 2, remaining: 0, resetsAt: new Date(minuteEndsMs).toISOString() },
      day: { limit: 1000, used: response.json.day.used, remaining: 0, resetsAt: MIDNIGHT },
      ban: { endsAt: new Date(api.clock.nowMs() + 60_000).toISOString() },
    })
    expect(readQuotaHeaders(response)).to.include({ remaining: 0, resetSeconds: Math.ceil(api.clock.nowMs() / 1000 + 60) })
    api.clock.advanceMs(60_000)
    expect((await getUsage(secret)).json).to.deep.include({ ban: null })
  })

  it('may be one second old', async () => {
    const { secret } = await api.issueKey('free')
    expect((await getUsage(secret)).json.day.used).to.equal(0)
    await list(secret)
    expect((await getUsage(secret)).json.day.used).to.equal(0)
    api.clock.advanceMs(1_000)
    expect((await getUsage(secret)).json.day.used).to.equal(1)
  })

  it('requires a valid key, and an invalid one counts as a failed authentication', async () => {
    expectError(await api.send('/v1/usage'), 401, 'missing_api_key')
    const first = await getUsage('rubbish')
    expectError(first, 401, 'invalid_api_key')
    const limit = readQuotaHeaders(first).limit
    for (let request = 1; request < limit; request++) await getUsage('rubbish')
    expectError(await getUsage('rubbish'), 429, 'too_many_failed_authentications')
  })

  it('returns 401 for a key that was revoked', async () => {
    const { key, secret } = await api.issueKey('free')
    await getUsage(secret)
    await api.parts.apiKeyAdmin.revoke(key.keyId, 'operator')
    api.clock.advanceMs(1_000)
    expectError(await getUsage(secret), 401, 'invalid_api_key')
  })

  it('reports a plan change after at most a second, although the record of the key is cached for longer', async () => {
    const { key, secret } = await api.issueKey('free')
    await getUsage(secret)
    await api.parts.apiKeyAdmin.changePlan(key.keyId, { plan: 'pro' }, 'operator')
    api.clock.advanceMs(1_000)
    expect((await getUsage(secret)).json).to.nested.include({ plan: 'pro', 'minute.limit': 300 })
  })

  it('charges every other method, which gets 405', async () => {
    const { secret } = await api.issueKey('free')
    expectError(await getUsage(secret, { method: 'POST' }), 405, 'method_not_allowed')
    expect((await getUsage(secret)).json.day.used).to.equal(1)
  })

  it('logs the key and counts no verdict', async () => {
    const { key, secret } = await api.issueKey('free')
    await getUsage(secret)
    expect(api.logLines.at(-1)).to.include({ keyId: key.keyId, route: '/v1/usage', status: 200 })
    expect(await api.parts.metrics.registry.metrics()).not.to.match(/^petstore_quota_verdicts_total\{.*\} [1-9]/m)
  })
})
