import { expect } from 'chai'
import type { Sent, TestApi, TestResponse } from '../support/api.js'
import { startApi } from '../support/api.js'
import { SAMPLE_PETS } from '../../src/adapters/memory/sample-data.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import { expectError } from '../support/responses.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'

const GRACE_MS = 3_600_000

describe('a request with the old secret of a rotated key', () => {
  let pets: UnreliablePetStore
  let api: TestApi

  beforeEach(async () => {
    pets = new UnreliablePetStore(SAMPLE_PETS)
    api = await startApi({ doubles: { pets } })
  })
  afterEach(() => api.stop())

  async function rotate(limits = { minute: 1_000, day: 1_000 }) {
    const { key, secret } = await api.issueKey('enterprise', { limits })
    const rotated = await api.parts.apiKeyAdmin.rotate(key.keyId, { graceMs: GRACE_MS }, 'alice')
    return { keyId: key.keyId, oldSecret: secret, newSecret: rotated.secret, end: new Date(api.clock.nowMs() + GRACE_MS).toUTCString() }
  }

  for (const [what, status, path, sent] of [
    ['a success', 200, '/v1/pets', {}],
    ['a success without a body', 200, '/v1/pets', { method: 'HEAD' }],
    ['a created pet', 201, '/v1/pets', { method: 'POST', body: { name: 'Rex', categoryId: 7 } }],
    ['the usage of the key', 200, '/v1/usage', {}],
    ['an invalid parameter', 400, '/v1/pets?limit=0', {}],
    ['an unknown pet', 404, '/v1/pets/999', {}],
    ['an unknown path', 404, '/v1/none', {}],
    ['another method', 405, '/v1/pets', { method: 'DELETE' }],
    ['another media type', 406, '/v1/pets', { headers: { accept: 'text/html' } }],
    ['a large body', 413, '/v1/pets', { method: 'POST', body: ' '.repeat(65_537), headers: { 'content-type': 'application/json' } }],
    ['a body that is not JSON', 415, '/v1/pets', { method: 'POST', body: 'x' }],
    ['an unexpected error', 500, '/v1/pets', {}],
    ['an outage', 503, '/v1/pets', {}],
  ] satisfies [string, number, string, Sent][]) {
    it(`gets the end of its grace period in X-API-Key-Expires, and one with the new secret does not: ${what}`, async () => {
      const { oldSecret, newSecret, end } = await rotate()
      if (status >= 500) pets.failure = status === 500 ? new TypeError('unexpected') : new StoreUnavailable('timed out')
      expect(await api.send(path, { ...sent, key: oldSecret })).to.have.nested.include({ status, 'headers.x-api-key-expires': end })
      const response = await api.send(path, { ...sent, key: newSecret })
      expect(response).to.have.property('status', status)
      expect(response.headers).not.to.have.property('x-api-key-expires')
    })
  }

  it('gets the header with a 429, too, and uses the same quota as the new secret', async () => {
    const { oldSecret, newSecret, end } = await rotate({ minute: 2, day: 1_000 })
    expect(await api.send('/v1/pets', { key: newSecret })).to.have.property('status', 200)
    expect(await api.send('/v1/pets', { key: oldSecret })).to.have.nested.include({ status: 200, 'headers.x-ratelimit-remaining': '0' })
    const rejected = await api.send('/v1/pets', { key: oldSecret })
    expectError(rejected, 429, 'rate_limit_exceeded')
    expect(rejected.headers).to.include({ 'x-api-key-expires': end })
  })

  it('gets 401 without the header from the second that the header names', async () => {
    const { oldSecret, newSecret, end } = await rotate()
    api.clock.moveTo(Date.parse(end) - 1)
    expect(await api.send('/v1/pets', { key: oldSecret })).to.have.property('status', 200)
    api.clock.advanceMs(1)
    const rejected = await api.send('/v1/pets', { key: oldSecret })
    expectError(rejected, 401, 'invalid_api_key')
    expect(rejected.headers).not.to.have.property('x-api-key-expires')
    expect(await api.send('/v1/pets', { key: newSecret })).to.have.property('status', 200)
  })

  it('gets 401 with the next request after the rotation is finished', async () => {
    const { keyId, oldSecret, newSecret } = await rotate()
    const statuses = () => Promise.all([oldSecret, newSecret].map(async (key) => (await api.send('/v1/pets', { key })).status))
    expect(await statuses()).to.deep.equal([200, 200])
    await api.parts.apiKeyAdmin.finishRotation(keyId, 'alice')
    expect(await statuses()).to.deep.equal([401, 200])
  })

  it('is counted whatever its status, is marked in the log, and neither shows a secret', async () => {
    const { keyId, oldSecret, newSecret } = await rotate()
    for (const path of ['/v1/pets', '/v1/none']) await api.send(path, { key: oldSecret })
    await api.send('/v1/pets', { key: newSecret })
    const metrics = await api.parts.metrics.registry.metrics()
    expect(metrics).to.include('\npetstore_old_secret_requests_total 2\n').and.not.include(keyId)
    const marked = api.logLines.filter(({ msg }) => msg === 'request').map((line) => line['oldSecret'])
    expect(marked).to.deep.equal([true, true, undefined])
    for (const hidden of [oldSecret, newSecret]) expect(JSON.stringify(api.logLines) + metrics).not.to.include(hidden)
  })
})

describe('a key that expires without a rotation', () => {
  it('gets no X-API-Key-Expires', async () => {
    const api = await startApi()
    try {
      const { secret } = await api.issueKey('pro', { expiresAtMs: api.clock.nowMs() + 1_000 })
      const response: TestResponse = await api.send('/v1/pets', { key: secret })
      expect(response).to.have.property('status', 200)
      expect(response.headers).not.to.have.property('x-api-key-expires')
    } finally {
      await api.stop()
    }
  })
})
