import { expect } from 'chai'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import type { Doubles, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'
import { MovableClock } from '../support/movable-clock.js'
import { readRetryAfterSeconds } from '../support/quota-steps.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'
import { issueAmpleKey, withApi } from '../support/api.js'

describe('a failure of ours', () => {
  let api: TestApi
  let key: string
  let pets: UnreliablePetStore
  let apiKeys: WatchedApiKeyStore

  beforeEach(async () => {
    pets = new UnreliablePetStore()
    apiKeys = new WatchedApiKeyStore()
    api = await startApi({
      doubles: { pets, apiKeyStore: apiKeys },
    })
    key = await issueAmpleKey(api)
  })
  afterEach(() => api.stop())

  const get = (path: string) => api.send(path, { key })

  describe('that is a surprise', () => {
    const surprise = (): Error =>
      Object.assign(new TypeError('cannot read hunter2 of undefined'), {
        status: 418,
        expose: true,
        headers: { 'X-Leak': 'hunter2' },
        code: 'pet_not_found',
      })

    it('is a 500 that tells the client nothing but the request id, and the log everything', async () => {
      pets.failure = surprise()
      for (const sent of [{}, { method: 'POST', body: { name: 'Rex', categoryId: 7 } }]) {
        const answer = await api.send('/v1/pets', { key, ...sent })
        expectError(answer, 500, 'internal_error')
        expect(answer.text + JSON.stringify(answer.headers)).to.not.match(/hunter2|TypeError|\.[jt]s\b|418/)
        const requestId = answer.headers['x-request-id']
        expect(requestId).to.match(/^[0-9a-f-]{36}$/)
        const logged = api.logLines.find((line) => line['requestId'] === requestId && line['err'] !== undefined)
        expect(logged?.['err']).to.include({ type: 'TypeError', message: 'cannot read hunter2 of undefined' })
        expect(logged?.['err'])
          .to.have.property('stack')
          .that.matches(/failures\.test\.[jt]s/)
      }
    })

    it('in a store is a 500 for HEAD, too, and leaves the service in order', async () => {
      pets.failure = surprise()
      expect(await api.send('/v1/pets/1', { method: 'HEAD', key })).to.include({ status: 500, text: '' })
      pets.failure = undefined
      expect(await get('/v1/pets')).to.have.property('status', 200)
    })

    it('while the key is looked up is a 500 with all its headers', async () => {
      apiKeys.failWith(surprise())
      const answer = await get('/v1/pets')
      expectError(answer, 500, 'internal_error')
      expect(readQuotaHeaders(answer).limit).to.equal(30)
    })

    it('while the quota is charged is a 500 with all its headers', () => {
      const quotas: QuotaStore = { take: () => Promise.reject(surprise()), refund: () => Promise.reject(surprise()) }
      return withApi({ doubles: { quotas } }, async (failing, failingKey) => {
        const answer = await failing.send('/v1/pets', { key: failingKey })
        expectError(answer, 500, 'internal_error')
        readQuotaHeaders(answer)
      })
    })

    it('is in the log also when its refund fails', () => {
      const doubles = withoutRefunds({ pets: surprise(), refund: new Error('no refund today') })
      return withApi({ doubles }, async (failing, failingKey) => {
        expectError(await failing.send('/v1/pets', { key: failingKey }), 500, 'internal_error')
        expect(JSON.stringify(failing.logLines)).to.include('hunter2').and.to.include('no refund today')
      })
    })

    it('in a refund leaves the answer as it was: an outage is 503 with Retry-After', () => {
      const doubles = withoutRefunds({ pets: new StoreUnavailable('down'), refund: surprise() })
      return withApi({ doubles }, async (failing, failingKey) => {
        const answer = await failing.send('/v1/pets', { key: failingKey })
        expectError(answer, 503, 'service_unavailable')
        expect(readRetryAfterSeconds(answer)).to.be.at.least(1)
      })
    })
  })

  describe('of a store that is away', () => {
    const away = new StoreUnavailable('connection to mongo-1.internal:27017 timed out')

    for (const [what, sent, path] of [
      ['listing', {}, '/v1/pets'],
      ['fetching', {}, '/v1/pets/1'],
      ['adding', { method: 'POST', body: { name: 'Rex', categoryId: 7 } }, '/v1/pets'],
    ] as const) {
      it(`is 503 with Retry-After for ${what}, and names no internals`, async () => {
        pets.failure = away
        const answer = await api.send(path, { key, ...sent })
        expectError(answer, 503, 'service_unavailable')
        expect(readRetryAfterSeconds(answer)).to.be.within(1, 10)
        expect(answer.text + JSON.stringify(answer.headers)).to.not.match(/mongo/)
      })
    }

    it('is 503 with all its headers while the key is looked up: an outage is no 401', async () => {
      apiKeys.failWith(away)
      const answer = await get('/v1/pets')
      expectError(answer, 503, 'service_unavailable')
      expect(readRetryAfterSeconds(answer)).to.be.within(1, 10)
      expect(readQuotaHeaders(answer).limit).to.equal(30)
    })

    it('is over with the outage: a key that could not be looked up is looked up again', async () => {
      apiKeys.failWith(away)
      await get('/v1/pets')
      apiKeys.failWith()
      expect(await get('/v1/pets')).to.have.property('status', 200)
    })

    it('is no failed authentication', async () => {
      apiKeys.failWith(away)
      for (let time = 0; time < 40; time += 1) await get('/v1/pets')
      apiKeys.failWith()
      expect(readQuotaHeaders(await api.send('/v1/pets')).remaining).to.equal(30)
    })
  })
})

/** Stores that fail: pets with one error, refunds with another. */
function withoutRefunds({ pets, refund }: { pets: Error; refund: Error }): Doubles {
  const quotas = Object.assign(new MemoryQuotaStore(new MovableClock()), { refund: () => Promise.reject(refund) })
  return { quotas, pets: Object.assign(new UnreliablePetStore(), { failure: pets }) }
}
