import { expect } from 'chai'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import { useApiPerTest, withApi } from '../support/api.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'
import { MovableClock } from '../support/movable-clock.js'
import { readRetryAfterSeconds } from '../support/quota-steps.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'

const makeUnexpected = (): Error =>
  Object.assign(new TypeError('cannot read hunter2 of undefined'), {
    status: 418,
    expose: true,
    headers: { 'X-Leak': 'hunter2' },
    code: 'pet_not_found',
  })
const unavailable = new StoreUnavailable('connection to mongo-1.internal:27017 timed out')

describe('a failure of the service', () => {
  let pets: UnreliablePetStore
  let apiKeyStore: WatchedApiKeyStore
  const api = useApiPerTest(() => {
    pets = new UnreliablePetStore()
    apiKeyStore = new WatchedApiKeyStore()
    return { doubles: { pets, apiKeyStore } }
  })

  /** A pet store that fails with `failure`, and a quota store whose refunds fail with `refundFailure`. */
  const failBoth = (failure: Error, refundFailure: Error) => ({
    pets: Object.assign(new UnreliablePetStore(), { failure }),
    quotas: Object.assign(new MemoryQuotaStore(new MovableClock()), { refund: () => Promise.reject(refundFailure) }),
  })

  describe('that is unexpected', () => {
    it('returns 500 with nothing but the request ID, and logs the error with its stack', async () => {
      pets.failure = makeUnexpected()
      for (const sent of [{}, { method: 'POST', body: { name: 'Rex', categoryId: 7 } }]) {
        const response = await api.call('/v1/pets', sent)
        expectError(response, 500, 'internal_error')
        expect(response.text + JSON.stringify(response.headers)).to.not.match(/hunter2|TypeError|\.[jt]s\b/)
        const requestId = response.headers['x-request-id']
        expect(requestId).to.match(/^[0-9a-f-]{36}$/)
        const logged = api.logLines.find((line) => line['requestId'] === requestId && line['err'] !== undefined)
        expect(logged?.['err']).to.include({ type: 'TypeError', message: 'cannot read hunter2 of undefined' })
        expect(logged?.['err'])
          .to.have.property('stack')
          .that.matches(/failures\.test\.[jt]s/)
      }
    })

    it('returns 500 for HEAD, too, and the next request is served', async () => {
      pets.failure = makeUnexpected()
      expect(await api.call('/v1/pets/1', { method: 'HEAD' })).to.include({ status: 500, text: '' })
      pets.failure = undefined
      expect(await api.call('/v1/pets')).to.have.property('status', 200)
    })

    it('returns 500 with quota headers during the lookup of the key', async () => {
      apiKeyStore.failWith(makeUnexpected())
      const response = await api.call('/v1/pets')
      expectError(response, 500, 'internal_error')
      expect(readQuotaHeaders(response).limit).to.equal(30)
    })

    it('returns 500 with quota headers if the quota cannot be charged', () => {
      const reject = () => Promise.reject(makeUnexpected())
      return withApi({ doubles: { quotas: { take: reject, refund: reject } } }, async (failing, key) => {
        const response = await failing.send('/v1/pets', { key })
        expectError(response, 500, 'internal_error')
        readQuotaHeaders(response)
      })
    })

    it('is logged even if the refund fails, too', () =>
      withApi({ doubles: failBoth(makeUnexpected(), new Error('the refund failed')) }, async (failing, key) => {
        expectError(await failing.send('/v1/pets', { key }), 500, 'internal_error')
        expect(JSON.stringify(failing.logLines)).to.include('hunter2').and.to.include('the refund failed')
      }))

    it('does not change the response if it occurs in the refund', () =>
      withApi({ doubles: failBoth(unavailable, makeUnexpected()) }, async (failing, key) => {
        const response = await failing.send('/v1/pets', { key })
        expectError(response, 503, 'service_unavailable')
        expect(readRetryAfterSeconds(response)).to.be.at.least(1)
      }))
  })

  describe('because a store is unavailable', () => {
    for (const [what, sent, path] of [
      ['listPets', {}, '/v1/pets'],
      ['getPet', {}, '/v1/pets/1'],
      ['createPet', { method: 'POST', body: { name: 'Rex', categoryId: 7 } }, '/v1/pets'],
    ] as const) {
      it(`returns 503 with Retry-After for ${what}, without internals`, async () => {
        pets.failure = unavailable
        const response = await api.call(path, sent)
        expectError(response, 503, 'service_unavailable')
        expect(readRetryAfterSeconds(response)).to.be.within(1, 10)
        expect(response.text + JSON.stringify(response.headers)).to.not.match(/mongo/)
      })
    }

    it('returns 503 with quota headers, not 401, during the lookup of the key, which is repeated afterwards', async () => {
      apiKeyStore.failWith(unavailable)
      const response = await api.call('/v1/pets')
      expectError(response, 503, 'service_unavailable')
      expect(readRetryAfterSeconds(response)).to.be.within(1, 10)
      expect(readQuotaHeaders(response).limit).to.equal(30)
      apiKeyStore.failWith()
      expect(await api.call('/v1/pets')).to.have.property('status', 200)
    })

    it('does not count as a failed authentication', async () => {
      apiKeyStore.failWith(unavailable)
      for (let request = 0; request < 40; request += 1) await api.call('/v1/pets')
      apiKeyStore.failWith()
      expect(readQuotaHeaders(await api.send('/v1/pets')).remaining).to.equal(30)
    })
  })
})
