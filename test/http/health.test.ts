import { expect } from 'chai'
import type { Server } from 'node:http'
import type { Dependency } from '../../src/adapters/http/admin/health.js'
import { Health } from '../../src/adapters/http/admin/health.js'
import { listen, makeServer } from '../../src/adapters/http/server/server.js'
import { expectError } from '../support/responses.js'
import type { TestApi } from '../support/api.js'
import { send, startApi } from '../support/api.js'
import { retryAfterSeconds } from '../support/quota-steps.js'
import { ampleKey, withApi } from '../support/with-api.js'

const health = (api: TestApi) => api.parts.health

describe('health', () => {
  let api: TestApi

  beforeEach(async () => {
    api = await startApi()
  })
  afterEach(() => api.stop())

  it('/livez is 200 from the start to the end, whatever the readiness', async () => {
    for (const change of ['none', 'startAccepting', 'stopAccepting'] as const) {
      if (change !== 'none') health(api)[change]()
      expect(await api.send('/livez')).to.include({ status: 200, text: '{"status":"ok"}' })
    }
  })

  it('/readyz is 503 with an error body until the process accepts traffic, and again once it no longer does', async () => {
    const expectUnready = async () => {
      const answer = await api.send('/readyz')
      expectError(answer, 503, 'service_unavailable')
      expect(retryAfterSeconds(answer)).to.be.within(1, 10)
    }
    await expectUnready()
    health(api).startAccepting()
    expect(await api.send('/readyz')).to.include({ status: 200, text: '{"status":"ok"}' })
    health(api).stopAccepting()
    await expectUnready()
  })

  it('/readyz has no quota to tell of, ready or not, so that it does not depend on where quotas are kept', async () => {
    for (const status of [503, 200]) {
      const answer = await api.send('/readyz')
      expect(answer).to.have.property('status', status)
      expect(Object.keys(answer.headers).filter((name) => name.includes('ratelimit'))).to.be.empty
      health(api).startAccepting()
    }
  })

  it('/readyz while starting or draining is no error in the log', async () => {
    await api.send('/readyz')
    expect(api.logLines.filter(({ level }) => Number(level) >= 50)).to.be.empty
  })

  it('while the process drains, requests are served on', async () => {
    const key = await ampleKey(api)
    health(api).startAccepting()
    health(api).stopAccepting()
    expect(await api.send('/v1/pets', { key })).to.include({ status: 200 })
  })

  it('asks for no key, knows no quota, and tells nothing else', async () => {
    health(api).startAccepting()
    for (const path of ['/livez', '/readyz']) {
      for (const sent of [{}, { key: 'rubbish' }]) {
        const answer = await api.send(path, sent)
        expect(answer).to.include({ status: 200, text: '{"status":"ok"}' })
        expect(answer.headers['content-type']).to.equal('application/json')
        expect(answer.headers).to.have.property('x-request-id')
        expect(Object.keys(answer.headers).filter((name) => name.includes('ratelimit'))).to.be.empty
      }
    }
  })

  it('/readyz checks no dependency, so that an outage does not remove all replicas from the load balancer', async () => {
    let checks = 0
    const down: Dependency = { name: 'mongodb', isRequired: true, isUp: async () => (checks++, false) }
    await withApi({ doubles: { health: new Health([down]) } }, async (own) => {
      health(own).startAccepting()
      for (let request = 0; request < 20; request += 1) expect(await own.send('/readyz')).to.have.property('status', 200)
      expect(checks).to.equal(0)
    })
  })

  const dependency = (name: string, required: boolean, up: boolean): Dependency => ({ name, isRequired: required, isUp: async () => up })

  for (const [what, dependencies, status] of [
    ['everything is up', [dependency('mongodb', true, true), dependency('redis', false, true)], 'ok'],
    ['an optional dependency is down', [dependency('mongodb', true, true), dependency('redis', false, false)], 'ok'],
    ['a required dependency is down', [dependency('mongodb', true, false), dependency('redis', false, true)], 'failing'],
  ] as const) {
    it(`/health reports ${status} and each dependency when ${what}`, async () => {
      const own = new Health(dependencies)
      own.startAccepting()
      const states = Object.fromEntries(
        await Promise.all(dependencies.map(async (each) => [each.name, (await each.isUp()) ? 'up' : 'down'] as const)),
      )
      expect(await own.check()).to.deep.include({ status, ready: true, dependencies: states })
    })
  }

  describe('on the admin port', () => {
    let admin: Server
    let url: string

    beforeEach(async () => {
      admin = makeServer(api.parts.adminApi, { log: api.parts.log })
      url = await listen(admin, '127.0.0.1', 0)
    })
    afterEach(async () => {
      admin.closeAllConnections()
      await new Promise((resolve) => admin.close(resolve))
    })

    const metrics = async () => (await send(url, '/metrics')).text

    it('/metrics counts requests by method, route template and status, never by path', async () => {
      const key = await ampleKey(api)
      for (const id of ['1', '2', '918273645', 'abc']) await api.send(`/v1/pets/${id}`, { key })
      await api.send('/v1/hunter2?hunter2=1', { key })
      await api.send('/hunter2')
      const text = await metrics()
      expect(text).to.contain('http_request_duration_seconds_count{method="GET",route="/v1/pets/{petId}",status="200"} 2\n')
      expect(text).to.contain('http_request_duration_seconds_count{method="GET",route="/v1/pets/{petId}",status="404"} 2\n')
      expect(text).to.contain('http_request_duration_seconds_count{method="GET",route="none",status="404"} 2\n')
      expect(text).to.not.match(/hunter2|918273645|abc|key_/)
    })

    it('/metrics counts the calls of a deprecated operation', async () => {
      const key = await ampleKey(api)
      for (const path of ['/v1/pets/1', '/v1/pets/999', '/v1/pets', '/v1/store/orders']) await api.send(path, { key })
      expect(await metrics()).to.contain('petstore_deprecated_requests_total{operation="getPet"} 2\n')
    })

    it('/metrics counts quota verdicts by plan, and requests without a verified key by code', async () => {
      const { secret } = await api.issueKey('pro', { limits: { minute: 2, day: 2 } })
      for (let request = 0; request < 5; request += 1) await api.send('/v1/pets', { key: secret })
      for (const sent of [{}, {}, { key: 'rubbish' }]) await api.send('/v1/pets', sent)
      const text = await metrics()
      expect(text).to.contain('petstore_quota_verdicts_total{plan="pro",verdict="admitted"} 2\n')
      expect(text).to.contain('petstore_quota_verdicts_total{plan="pro",verdict="exhausted"} 3\n')
      expect(text).to.contain('petstore_unauthenticated_requests_total{code="missing_api_key"} 2\n')
      expect(text).to.contain('petstore_unauthenticated_requests_total{code="invalid_api_key"} 1\n')
    })

    it('/metrics counts as unauthenticated only what was refused for want of a key', async () => {
      await api.send('/nowhere')
      await api.send('/readyz')
      expect(await metrics()).to.not.match(/petstore_unauthenticated_requests_total\{/)
    })

    it('/health tells the operator what the API port does not', async () => {
      const before = await send(url, '/health')
      health(api).startAccepting()
      const after = await send(url, '/health')
      expect(before.status).to.equal(503)
      expect(JSON.parse(before.text)).to.include({ status: 'failing', ready: false })
      expect(after.status).to.equal(200)
      expect(JSON.parse(after.text)).to.deep.include({ status: 'ok', ready: true, dependencies: {} })
    })

    it('is a port of its own: neither serves what the other does', async () => {
      for (const path of ['/metrics', '/health']) expect((await api.send(path)).status).to.equal(404)
      for (const path of ['/v1/pets', '/livez', '/docs', '/nowhere']) expect((await send(url, path)).status).to.equal(404)
    })
  })
})
