import { expect } from 'chai'
import type { Server } from 'node:http'
import type { Dependency } from '../../src/adapters/http/admin/health.js'
import { Health } from '../../src/adapters/http/admin/health.js'
import { listen, makeServer } from '../../src/adapters/http/server/server.js'
import { expectError } from '../support/responses.js'
import { send, useApiPerTest, withApi } from '../support/api.js'
import { readRetryAfterSeconds } from '../support/quota-steps.js'

const OK = { status: 200, text: '{"status":"ok"}' }

describe('health', () => {
  const api = useApiPerTest()

  it('/livez returns 200 before the process is ready, while it is ready, and while it drains', async () => {
    for (const change of [undefined, 'startAccepting', 'stopAccepting'] as const) {
      if (change) api.parts.health[change]()
      expect(await api.send('/livez')).to.include(OK)
    }
  })

  it('/readyz returns 503 before the process is ready and while it drains, without an error in the log', async () => {
    const { health } = api.parts
    const expectUnready = async () => {
      const response = await api.send('/readyz')
      expectError(response, 503, 'service_unavailable')
      expect(readRetryAfterSeconds(response)).to.be.within(1, 10)
      expect(Object.keys(response.headers).filter((name) => name.includes('ratelimit'))).to.be.empty
    }
    await expectUnready()
    health.startAccepting()
    expect(await api.send('/readyz')).to.include(OK)
    health.stopAccepting()
    await expectUnready()
    expect(api.logLines.filter(({ level }) => Number(level) >= 50)).to.be.empty
  })

  it('does not prevent requests from being served while the process drains', async () => {
    api.parts.health.startAccepting()
    api.parts.health.stopAccepting()
    expect(await api.call('/v1/pets')).to.include({ status: 200 })
  })

  it('needs no key and has no quota, so that it does not depend on the quota store', async () => {
    api.parts.health.startAccepting()
    for (const path of ['/livez', '/readyz']) {
      for (const sent of [{}, { key: 'rubbish' }]) {
        const response = await api.send(path, sent)
        expect(response).to.include(OK)
        expect(response.headers).to.include({ 'content-type': 'application/json' }).and.to.have.property('x-request-id')
        expect(Object.keys(response.headers).filter((name) => name.includes('ratelimit'))).to.be.empty
      }
    }
  })

  it('/readyz checks no dependency, so that an outage does not remove all replicas from the load balancer', async () => {
    let checks = 0
    const down: Dependency = { name: 'mongodb', isRequired: true, isUp: async () => (checks++, false) }
    const health = new Health([down])
    await withApi({ doubles: { health } }, async (own) => {
      health.startAccepting()
      for (let request = 0; request < 20; request += 1) expect(await own.send('/readyz')).to.have.property('status', 200)
      expect(checks).to.equal(0)
    })
  })

  for (const [what, mongodb, redis, status] of [
    ['every dependency is up', 'up', 'up', 'ok'],
    ['an optional dependency is down', 'up', 'down', 'ok'],
    ['a required dependency is down', 'down', 'up', 'failing'],
  ] as const) {
    it(`/health reports ${status} and each dependency if ${what}`, async () => {
      const health = new Health([
        { name: 'mongodb', isRequired: true, isUp: async () => mongodb === 'up' },
        { name: 'redis', isRequired: false, isUp: async () => redis === 'up' },
      ])
      health.startAccepting()
      expect(await health.check()).to.deep.include({ status, ready: true, dependencies: { mongodb, redis } })
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

    const scrape = async () => (await send(url, '/metrics')).text

    it('/metrics counts requests by method, route template and status, never by path', async () => {
      for (const id of ['1', '2', '918273645', 'abc']) await api.call(`/v1/pets/${id}`)
      await api.call('/v1/hunter2?hunter2=1')
      await api.send('/hunter2')
      const text = await scrape()
      for (const [route, status] of [
        ['/v1/pets/{petId}', 200],
        ['/v1/pets/{petId}', 404],
        ['none', 404],
      ]) {
        expect(text).to.contain(`http_request_duration_seconds_count{method="GET",route="${route}",status="${status}"} 2\n`)
      }
      expect(text).to.not.match(/hunter2|918273645|abc|key_/)
    })

    it('/metrics counts the calls of a deprecated operation', async () => {
      for (const path of ['/v1/pets/1', '/v1/pets/999', '/v1/pets', '/v1/store/orders']) await api.call(path)
      expect(await scrape()).to.contain('petstore_deprecated_requests_total{operation="getPet"} 2\n')
    })

    it('/metrics counts quota verdicts by plan, and failed authentications by code', async () => {
      const { secret } = await api.issueKey('pro', { limits: { minute: 2, day: 2 } })
      for (let request = 0; request < 5; request += 1) await api.send('/v1/pets', { key: secret })
      for (const sent of [{}, {}, { key: 'rubbish' }]) await api.send('/v1/pets', sent)
      for (const path of ['/nowhere', '/readyz']) await api.send(path)
      const text = await scrape()
      expect(text).to.contain('petstore_quota_verdicts_total{plan="pro",verdict="admitted"} 2\n')
      expect(text).to.contain('petstore_quota_verdicts_total{plan="pro",verdict="exhausted",window="day"} 3\n')
      expect(text.match(/^petstore_unauthenticated_requests_total\{.*$/gm)).to.have.members([
        'petstore_unauthenticated_requests_total{code="missing_api_key"} 2',
        'petstore_unauthenticated_requests_total{code="invalid_api_key"} 1',
      ])
    })

    it('/health reports the status, the readiness and the dependencies', async () => {
      const before = await send(url, '/health')
      api.parts.health.startAccepting()
      const after = await send(url, '/health')
      expect(before.status).to.equal(503)
      expect(JSON.parse(before.text)).to.include({ status: 'failing', ready: false })
      expect(after.status).to.equal(200)
      expect(JSON.parse(after.text)).to.deep.include({ status: 'ok', ready: true, dependencies: {} })
    })

    it('shares no path with the API port', async () => {
      for (const path of ['/metrics', '/health']) expect((await api.send(path)).status).to.equal(404)
      for (const path of ['/v1/pets', '/livez', '/docs', '/nowhere']) expect((await send(url, path)).status).to.equal(404)
    })
  })
})
