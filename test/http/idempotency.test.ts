import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { Pet } from '../../src/core/pet.js'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { expectError } from '../support/responses.js'
import type { TestResponse } from '../support/api.js'
import { useApiPerTest } from '../support/api.js'

const DAY_MS = 24 * 60 * 60 * 1000
const REX = { name: 'Rex', categoryId: 7 }
const MAX = { name: 'Max', categoryId: 8 }

/** The memory store, whose next insert throws `StoreUnavailable` before or after the write. */
class PetStoreThatFailsOnce extends MemoryPetStore {
  failNext: 'before the write' | 'after the write' | undefined

  override async insert(pet: Pet): Promise<'inserted' | 'taken'> {
    const fail = this.failNext
    this.failNext = undefined
    if (fail === 'before the write') throw new StoreUnavailable('timed out')
    const outcome = await super.insert(pet)
    if (fail === 'after the write') throw new StoreUnavailable('timed out')
    return outcome
  }
}

describe('an Idempotency-Key', () => {
  let pets: PetStoreThatFailsOnce
  const api = useApiPerTest(() => {
    pets = new PetStoreThatFailsOnce()
    return { config: { hasSampleData: false }, doubles: { pets } }
  })

  const post = (idempotencyKey: string | readonly string[], body: unknown = REX) => api.postPet(body, { 'idempotency-key': idempotencyKey })
  const countPets = async () => (await api.call('/v1/pets?limit=100')).json.length as number

  function expectReplay(response: TestResponse, original: TestResponse): void {
    expect(response).to.include({ status: 201, text: original.text })
    const { location } = original.headers
    expect(response.headers).to.include({ location, 'idempotent-replayed': 'true', 'content-type': 'application/json' })
  }

  function expectNewPet(response: TestResponse): void {
    expect(response.status, response.text).to.equal(201)
    expect(response.headers).to.not.have.property('idempotent-replayed')
  }

  it('gives a retry the same 201, marked as a replay, and no second pet', async () => {
    const first = await post('a-1')
    expectNewPet(first)
    for (let retry = 0; retry < 3; retry += 1) expectReplay(await post('a-1'), first)
    expect(await countPets()).to.equal(1)
  })

  it('returns 422 for a different body, and replays for the first one continue', async () => {
    const first = await post('a-1')
    for (const changed of [{ name: 'Max' }, { categoryId: 8 }, { status: 'sold' }]) {
      expectError(await post('a-1', { ...REX, ...changed }), 422, 'idempotency_key_reused')
    }
    expectReplay(await post('a-1'), first)
    expect(await countPets()).to.equal(1)
  })

  it('returns 422 for a categoryId that differs only beyond the precision of a float', async () => {
    await post('a-1', '{"name":"Rex","categoryId":9007199254740992}')
    expectError(await post('a-1', '{"name":"Rex","categoryId":9007199254740993}'), 422, 'idempotency_key_reused')
  })

  it('accepts the same pet in a different notation', async () => {
    const first = await post('a-1')
    for (const same of [
      '{ "categoryId" : 7.0 , "name" : "Rex" }',
      '{"name":"\\u0052ex","categoryId":70e-1,"status":"available"}',
      '{"name":"  Rex ","categoryId":7,"id":99,"tags":[]}',
    ]) {
      expectReplay(await post('a-1', same), first)
    }
  })

  it('creates one pet for concurrent requests, all of which return it', async () => {
    const responses = await Promise.all(Array.from({ length: 20 }, () => post('a-1')))
    expect(new Set(responses.map(({ status, text }) => `${status} ${text}`))).to.have.property('size', 1)
    expect(responses.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).to.have.length(1)
    expect(await countPets()).to.equal(1)
  })

  it('belongs to one API key: a different key can use the same value for a different pet', async () => {
    await post('a-1')
    const { secret } = await api.issueKey()
    expectNewPet(await api.call('/v1/pets', { method: 'POST', key: secret, headers: { 'idempotency-key': 'a-1' }, body: MAX }))
    expect(await countPets()).to.equal(2)
  })

  it('creates another pet with a different value, even if only the letter case differs, or without a value', async () => {
    for (const value of ['a-1', 'A-1', 'a-2']) expectNewPet(await post(value))
    for (let request = 0; request < 2; request += 1) expectNewPet(await api.postPet(REX))
    expect(await countPets()).to.equal(5)
  })

  it('expires after exactly 24 hours', async () => {
    const first = await post('a-1')
    api.clock.advanceMs(DAY_MS - 1)
    expectReplay(await post('a-1'), first)
    api.clock.advanceMs(1)
    expectNewPet(await post('a-1', MAX))
    expect(await countPets()).to.equal(2)
  })

  it('is the same with and without double quotes', async () => {
    const first = await post('"8e03978e-40d5"')
    for (const value of ['8e03978e-40d5', '"8e03978e-40d5"']) expectReplay(await post(value), first)
  })

  for (const value of ['a', 'x'.repeat(255), `"${'x'.repeat(255)}"`, 'AZaz09_-.:']) {
    it(`can be ${value.slice(0, 20)} (${value.length} characters)`, async () => expectNewPet(await post(value)))
  }

  for (const value of [
    '',
    '""',
    '"',
    'a b',
    '"a',
    'a"',
    '"a"b"',
    "'a'",
    'a,b',
    'a/b',
    'x'.repeat(256),
    `"${'x'.repeat(256)}"`,
    'é',
    '\t',
  ]) {
    it(`returns 400 for ${JSON.stringify(value.slice(0, 20))} (${value.length} characters)`, async () => {
      expect(expectError(await post(value), 400, 'invalid_parameter')).to.match(/^Idempotency-Key: /)
      expect(await countPets()).to.equal(0)
    })
  }

  it('returns 400 if it is sent twice, even with the same value', async () =>
    void expectError(await post(['a-1', 'a-1']), 400, 'invalid_parameter'))

  it('can be used after a request with the same value was rejected', async () => {
    const headers = { 'idempotency-key': 'a-1' }
    expectError(await post('a-1', { ...REX, name: '' }), 400, 'validation_failed')
    expectError(await post('a-1', '{'), 400, 'invalid_json')
    expectError(await post('a-1', ' '.repeat(70_000)), 413, 'payload_too_large')
    expectError(await api.call('/v1/pets', { method: 'POST', key: `${api.key}x`, headers, body: REX }), 401, 'invalid_api_key')
    expectError(await api.call('/v1/pets', { method: 'POST', headers, body: 'x' }), 415, 'unsupported_media_type')
    expectNewPet(await post('a-1'))
  })

  for (const [moment, petsAfterFailure] of [
    ['before the write', 0],
    ['after the write', 1],
  ] as const) {
    it(`makes a retry create exactly one pet if the store failed ${moment}`, async () => {
      pets.failNext = moment
      expectError(await post('a-1'), 503, 'service_unavailable')
      expect(await countPets()).to.equal(petsAfterFailure)
      const retried = await post('a-1')
      expect(retried.status).to.equal(201)
      expectReplay(await post('a-1'), retried)
      expect(await countPets()).to.equal(1)
    })
  }

  it('returns 422 for a different body even if the store failed before the write', async () => {
    pets.failNext = 'before the write'
    await post('a-1')
    expectError(await post('a-1', MAX), 422, 'idempotency_key_reused')
  })

  it('is ignored by other operations', async () => {
    expect(await api.call('/v1/pets', { headers: { 'idempotency-key': 'a b' } })).to.have.property('status', 200)
  })
})
