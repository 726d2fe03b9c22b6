import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { Limits } from '../../src/core/quota.js'
import { readRateLimitFields, readQuotaHeaders } from '../support/responses.js'
import type { Sent, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { moveToMinuteStart } from '../support/quota-steps.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'

describe('the quota of a key is charged', () => {
  let api: TestApi
  let pets: UnreliablePetStore
  let key: string

  beforeEach(async () => {
    pets = new UnreliablePetStore()
    api = await startApi({ doubles: { pets } })
    key = await keyWith({ minute: 1000, day: 1000 })
    await moveToMinuteStart(api, key)
  })
  afterEach(() => api.stop())

  const keyWith = async (limits: Limits) => (await api.issueKey('enterprise', { limits })).secret
  const list = (secret: string) => api.send('/v1/pets', { key: secret })

  const cost = async (path: string, sent: Sent = {}, status?: number) => {
    const before = readQuotaHeaders(await list(key)).remaining
    const answer = await api.send(path, sent)
    if (status !== undefined) expect({ ...answer }).to.have.property('status', status)
    return before - readQuotaHeaders(await list(key)).remaining - 1
  }

  const sent: [string, string, Sent, number][] = [
    ['a good request', '/v1/pets', {}, 200],
    ['HEAD', '/v1/pets', { method: 'HEAD' }, 200],
    ['a new pet', '/v1/pets', { method: 'POST', body: { name: 'Rex', categoryId: 7 } }, 201],
    ['400', '/v1/pets?limit=0', {}, 400],
    ['a bad cursor', '/v1/pets?cursor=x', {}, 400],
    ['a missing body', '/v1/pets', { method: 'POST' }, 400],
    ['an unknown pet', '/v1/pets/999', {}, 404],
    ['an unknown path', '/v1/none', {}, 404],
    ['405', '/v1/pets', { method: 'DELETE' }, 405],
    ['406', '/v1/pets', { headers: { accept: 'text/html' } }, 406],
    ['413', '/v1/pets', { method: 'POST', body: ' '.repeat(70_000), headers: { 'content-type': 'application/json' } }, 413],
    ['415', '/v1/pets', { method: 'POST', body: 'x' }, 415],
    ['417', '/v1/pets', { headers: { expect: 'a miracle' } }, 417],
  ]
  for (const [what, path, request, status] of sent) {
    it(`one request for ${what}`, async () => expect(await cost(path, { ...request, key }, status)).to.equal(1))
  }

  it('nothing for OPTIONS, health, document and docs, key or not', async () => {
    expect(await cost('/v1/pets', { method: 'OPTIONS', key }, 204)).to.equal(0)
    for (const path of ['/livez', '/openapi.json', '/openapi.yaml', '/docs']) expect(await cost(path, { key }, 200)).to.equal(0)
  })

  it('nothing for 401s in its name', async () => {
    expect(await cost('/v1/pets', { headers: { authorization: [`Bearer ${key}`, `Bearer ${key}`] } }, 401)).to.equal(0)
    expect(await cost('/v1/pets', { key: `${key}x` }, 401)).to.equal(0)
  })

  for (const [status, failure] of [
    [500, new TypeError('a surprise')],
    [503, new StoreUnavailable('no answer in time')],
  ] as const) {
    it(`nothing for a ${status}, which gives the request back and says so in its own headers`, async () => {
      const before = await list(key)
      pets.failure = failure
      const failed = await list(key)
      pets.failure = undefined
      expect(failed.status).to.equal(status)
      expect(readQuotaHeaders(failed)).to.deep.equal(readQuotaHeaders(before))
      expect(readRateLimitFields(failed)).to.deep.equal(readRateLimitFields(before))
      expect(readQuotaHeaders(await list(key)).remaining).to.equal(readQuotaHeaders(before).remaining - 1)
    })
  }

  it('nothing for a 5xx, so that not even the last request of a minute is lost to it', async () => {
    const last = await keyWith({ minute: 1, day: 10 })
    pets.failure = new StoreUnavailable('no answer in time')
    for (let time = 0; time < 5; time += 1) expect((await list(last)).status).to.equal(503)
    pets.failure = undefined
    expect((await list(last)).status).to.equal(200)
  })
})
