import { expect } from 'chai'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { SAMPLE_PETS } from '../../src/adapters/memory/sample-data.js'
import type { PetStore } from '../../src/core/ports/pet-store.js'
import { aPet } from '../support/builders.js'
import { expectError, findLink } from '../support/responses.js'
import type { TestResponse, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { issueAmpleKey, withApi } from '../support/api.js'

const REMOVED_AT_MS = Date.parse('2030-12-05T00:00:00Z')

describe('GET /v1/pets/{petId}', () => {
  let api: TestApi
  let key: string
  let pets: PetStore

  before(async () => {
    pets = new MemoryPetStore(SAMPLE_PETS)
    api = await startApi({ doubles: { pets } })
    key = await issueAmpleKey(api)
  })
  after(() => api.stop())

  const get = (id: string | bigint) => api.send(`/v1/pets/${id}`, { key })

  it('answers the pet', async () => {
    expect(await get('4')).to.include({ status: 200, text: '{"id":4,"name":"Bruno","categoryId":1,"status":"sold"}' })
  })

  it('finds the largest id that the service assigns', async () => {
    await pets.insert(aPet({ id: 9_007_199_254_740_991n }))
    expect((await get('9007199254740991')).text).to.match(/^\{"id":9007199254740991,/)
  })

  for (const id of ['11', '999999999', '9007199254740990', '9007199254740992', '9223372036854775807', '0', '-1', '-9223372036854775808']) {
    it(`${id} is an int64 of no pet: 404`, async () => void expectError(await get(id), 404, 'pet_not_found'))
  }

  for (const id of [
    'abc',
    '1.5',
    '1.0',
    '1e0',
    '9223372036854775808',
    '-9223372036854775809',
    '01',
    '00',
    '-0',
    '+1',
    '0x1',
    '1n',
    '%201',
    '1%20',
    '1%00',
    '%D9%A1',
    '1%2F',
    '%zz',
    '%FF',
    'null',
    '{petId}',
    '1;x=1',
    '1,2',
    '9'.repeat(3000),
  ]) {
    it(`${id.slice(0, 30)} is no int64, and so the id of no pet: 404`, async () => void expectError(await get(id), 404, 'pet_not_found'))
  }

  it('knows no query parameters', async () => {
    expect(expectError(await get('1?status=sold&x=1'), 400, 'invalid_parameter')).to.match(/^status: [^;]+; x: [^;]+$/)
    expectError(await get('999?x=1'), 400, 'invalid_parameter')
  })

  it('HEAD has the headers of GET and no body', async () => {
    const [got, head] = [await get('4'), await api.send('/v1/pets/4', { method: 'HEAD', key })]
    expect(head).to.include({ status: 200, text: '' })
    for (const name of ['content-length', 'content-type', 'deprecation', 'sunset', 'link'])
      expect(head.headers[name]).to.equal(got.headers[name])
    expect(await api.send('/v1/pets/abc', { method: 'HEAD', key })).to.include({ status: 404, text: '' })
  })

  describe('is deprecated, which', () => {
    function expectDeprecation({ status, headers }: TestResponse): void {
      expect(headers['deprecation'], `${status}`).to.match(/^@\d{10}$/)
      expect(headers['sunset'], `${status}`).to.equal('Thu, 05 Dec 2030 00:00:00 GMT')
      expect(findLink('successor-version', { headers })).to.equal('/v1/pets')
    }

    it('every answer of the route says, whatever its status', async () => {
      const { secret: spent } = await api.issueKey('enterprise', { limits: { minute: 1, day: 1 } })
      await api.send('/v1/pets', { key: spent })
      const answers = [
        await get('1'),
        await api.send('/v1/pets/1', { method: 'HEAD', key }),
        await api.send('/v1/pets/1', { method: 'OPTIONS' }),
        await api.send('/v1/pets/1'),
        await api.send('/v1/pets/1', { key: 'rubbish' }),
        await get('999'),
        await get('abc'),
        await api.send('/v1/pets/1', { method: 'DELETE', key }),
        await api.send('/v1/pets/1', { key, headers: { accept: 'text/html' } }),
        await api.send('/v1/pets/1', { key, headers: { expect: 'a miracle' } }),
        await api.send('/v1/pets/1', { key: spent }),
      ]
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 204, 401, 401, 404, 404, 405, 406, 417, 429])
      for (const answer of answers) expectDeprecation(answer)
    })

    it('no answer of another route says', async () => {
      for (const path of ['/v1/pets', '/v1/store/orders', '/v1/pets/', '/v1/pets/1/', '/v1/none']) {
        expect((await api.send(path, { key })).headers).to.not.have.any.keys('deprecation', 'sunset')
      }
    })

    it('has a date that does not move with the clock, before the removal', () =>
      withApi({}, async (own, ownKey) => {
        const { deprecation } = (await own.send('/v1/pets/1', { key: ownKey })).headers
        own.clock.advanceSeconds(1_000_000)
        expect((await own.send('/v1/pets/1', { key: ownKey })).headers).to.include({ deprecation })
        expect(Number(String(deprecation).slice(1)) * 1000).to.be.below(REMOVED_AT_MS)
      }))
  })

  describe('is removed on 5 December 2030, 00:00 UTC', () => {
    const atRemoval = (offsetMs: number, use: (removed: TestApi, removedKey: string) => Promise<void>) =>
      withApi({}, async (own, ownKey) => {
        own.clock.moveTo(REMOVED_AT_MS + offsetMs)
        await use(own, ownKey)
      })

    it('and not a millisecond earlier', () =>
      atRemoval(-1, async (own, ownKey) => {
        expect(await own.send('/v1/pets/1', { key: ownKey })).to.include({ status: 200 })
        expectError(await own.send('/v1/pets/999', { key: ownKey }), 404, 'pet_not_found')
        own.clock.advanceMs(1)
        expectError(await own.send('/v1/pets/1', { key: ownKey }), 410, 'operation_removed')
      }))

    for (const id of ['1', '999', '9223372036854775808', 'abc', '1?x=1']) {
      it(`/v1/pets/${id} is 410 from then on, and leads to the successor`, () =>
        atRemoval(0, async (own, ownKey) => {
          const answer = await own.send(`/v1/pets/${id}`, { key: ownKey })
          expectError(answer, 410, 'operation_removed')
          expect(answer.headers['sunset']).to.equal('Thu, 05 Dec 2030 00:00:00 GMT')
          expect(findLink('successor-version', answer)).to.equal('/v1/pets')
        }))
    }

    it('for HEAD, too; 401, 405 and 406 come before it', () =>
      atRemoval(86_400_000, async (own, ownKey) => {
        expect(await own.send('/v1/pets/1', { method: 'HEAD', key: ownKey })).to.include({ status: 410, text: '' })
        expectError(await own.send('/v1/pets/1'), 401, 'missing_api_key')
        expectError(await own.send('/v1/pets/1', { method: 'PUT', key: ownKey }), 405, 'method_not_allowed')
        expectError(await own.send('/v1/pets/1', { key: ownKey, headers: { accept: 'text/html' } }), 406, 'not_acceptable')
      }))

    it('and its successor is not', () =>
      atRemoval(0, async (own, ownKey) => {
        expect(await own.send('/v1/pets?status=available', { key: ownKey })).to.include({ status: 200 })
        expect(await own.send('/v1/pets', { method: 'POST', key: ownKey, body: { name: 'Rex', categoryId: 7 } })).to.include({
          status: 201,
        })
      }))
  })
})
