import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { Pet } from '../../src/core/pet.js'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { expectError } from '../support/responses.js'
import type { TestResponse, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { ampleKey } from '../support/with-api.js'

const DAY_MS = 24 * 60 * 60 * 1000

/** The real store, whose next insert is not answered: it happens, or it does not. */
class StoreThatFailsOnce extends MemoryPetStore {
  failNext: 'before the write' | 'after the write' | undefined

  override async insert(pet: Pet): Promise<'inserted' | 'taken'> {
    const fail = this.failNext
    this.failNext = undefined
    if (fail === 'before the write') throw new StoreUnavailable('no answer in time')
    const outcome = await super.insert(pet)
    if (fail === 'after the write') throw new StoreUnavailable('no answer in time')
    return outcome
  }
}

describe('an Idempotency-Key', () => {
  let api: TestApi
  let key: string
  let pets: StoreThatFailsOnce

  beforeEach(async () => {
    pets = new StoreThatFailsOnce()
    api = await startApi({
      config: { hasSampleData: false },
      doubles: { pets },
    })
    key = await ampleKey(api)
  })
  afterEach(() => api.stop())

  const REX = { name: 'Rex', categoryId: 7 }
  const post = (idempotencyKey: string | readonly string[], body: unknown = REX, secret = key) =>
    api.send('/v1/pets', {
      method: 'POST',
      key: secret,
      headers: { 'idempotency-key': idempotencyKey, 'content-type': 'application/json' },
      body,
    })
  const petCount = async () => (await api.send('/v1/pets?limit=100', { key })).json.length as number

  function expectReplay(answer: TestResponse, of: TestResponse): void {
    expect({ ...answer, status: of.status }).to.include({ status: 201, text: of.text })
    expect(answer.headers).to.include({ location: of.headers.location, 'idempotent-replayed': 'true', 'content-type': 'application/json' })
  }

  it('makes a retry get the same 201, which says that it is a replay, and adds no second pet', async () => {
    const first = await post('a-1')
    expect(first.status).to.equal(201)
    expect(first.headers).to.not.have.property('idempotent-replayed')
    for (let retry = 0; retry < 3; retry += 1) expectReplay(await post('a-1'), first)
    expect(await petCount()).to.equal(1)
  })

  it('with another body is 422, and the first pet and its retries stay as they are', async () => {
    const first = await post('a-1')
    for (const other of [
      { ...REX, name: 'Max' },
      { ...REX, categoryId: 8 },
      { ...REX, status: 'sold' },
    ]) {
      expectError(await post('a-1', other), 422, 'idempotency_key_reused')
    }
    expectReplay(await post('a-1'), first)
    expect(await petCount()).to.equal(1)
  })

  it('tells apart categories that a float would not', async () => {
    const withCategory = (digits: string) => post('a-1', `{"name":"Rex","categoryId":${digits}}`)
    await withCategory('9007199254740992')
    expectError(await withCategory('9007199254740993'), 422, 'idempotency_key_reused')
  })

  it('takes the same pet spelt differently for the same', async () => {
    const first = await post('a-1')
    for (const same of [
      '{ "categoryId" : 7.0 , "name" : "Rex" }',
      '{"name":"\\u0052ex","categoryId":70e-1,"status":"available"}',
      '{"name":"  Rex ","categoryId":7,"id":99,"tags":[]}',
    ]) {
      expectReplay(await post('a-1', same), first)
    }
  })

  it('makes concurrent twins add one pet, and tells each of them of it', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => post('a-1')))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).to.have.property('size', 1)
    expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).to.have.length(1)
    expect(await petCount()).to.equal(1)
  })

  it('belongs to one API key: another one may use it for another pet', async () => {
    const other = await api.issueKey()
    const first = await post('a-1')
    const second = await post('a-1', { name: 'Max', categoryId: 8 }, other.secret)
    expect(second).to.include({ status: 201 })
    expect(second.headers).to.not.have.property('idempotent-replayed')
    expect(second.json.id).to.not.equal(first.json.id)
  })

  it('of another value adds another pet, letter case included; so does none', async () => {
    for (const value of ['a-1', 'A-1', 'a-2']) expect((await post(value)).headers).to.not.have.property('idempotent-replayed')
    for (let time = 0; time < 2; time += 1) await api.send('/v1/pets', { method: 'POST', key, body: REX })
    expect(await petCount()).to.equal(5)
  })

  it('is remembered for 24 hours to the millisecond; after that it adds a new pet', async () => {
    const first = await post('a-1')
    api.clock.advanceMs(DAY_MS - 1)
    expectReplay(await post('a-1'), first)
    api.clock.advanceMs(1)
    const next = await post('a-1', { name: 'Max', categoryId: 8 })
    expect(next).to.include({ status: 201 })
    expect(next.headers).to.not.have.property('idempotent-replayed')
    expect(next.json.id).to.not.equal(first.json.id)
  })

  it('is the same with double quotes and without', async () => {
    const first = await post('"8e03978e-40d5"')
    expectReplay(await post('8e03978e-40d5'), first)
    expectReplay(await post('"8e03978e-40d5"'), first)
  })

  for (const value of ['a', 'x'.repeat(255), `"${'x'.repeat(255)}"`, 'AZaz09_-.:']) {
    it(`may be ${value.slice(0, 20)} (${value.length} characters)`, async () => expect((await post(value)).status).to.equal(201))
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
    it(`may not be ${JSON.stringify(value.slice(0, 20))} (${value.length} characters)`, async () => {
      const message = expectError(await post(value), 400, 'invalid_parameter')
      expect(message).to.match(/^Idempotency-Key: /)
      expect(await petCount()).to.equal(0)
    })
  }

  it('may not be sent twice, not even with the same value', async () =>
    void expectError(await post(['a-1', 'a-1']), 400, 'invalid_parameter'))

  it('is not used up by a request that is refused with 400, 401, 413 or 415', async () => {
    expectError(await post('a-1', { name: '', categoryId: 7 }), 400, 'validation_failed')
    expectError(await post('a-1', '{'), 400, 'invalid_json')
    expectError(await post('a-1', ' '.repeat(70_000)), 413, 'payload_too_large')
    expectError(await post('a-1', REX, `${key}x`), 401, 'invalid_api_key')
    expectError(
      await api.send('/v1/pets', { method: 'POST', key, headers: { 'idempotency-key': 'a-1' }, body: 'x' }),
      415,
      'unsupported_media_type',
    )
    expect((await post('a-1')).headers).to.not.have.property('idempotent-replayed')
  })

  it('heals a store that failed before the pet was written: the retry adds it', async () => {
    pets.failNext = 'before the write'
    expectError(await post('a-1'), 503, 'service_unavailable')
    expect(await petCount()).to.equal(0)
    const retried = await post('a-1')
    expect(retried.status).to.equal(201)
    expectReplay(await post('a-1'), retried)
    expect(await petCount()).to.equal(1)
  })

  it('heals a store that failed after the pet was written: the retry finds it', async () => {
    pets.failNext = 'after the write'
    expectError(await post('a-1'), 503, 'service_unavailable')
    expect(await petCount()).to.equal(1)
    expect(await post('a-1')).to.include({ status: 201 })
    expect(await petCount()).to.equal(1)
  })

  it('holds its pet through a failure: another body is 422 even when nothing was written yet', async () => {
    pets.failNext = 'before the write'
    await post('a-1')
    expectError(await post('a-1', { name: 'Max', categoryId: 8 }), 422, 'idempotency_key_reused')
  })

  it('on a listing means nothing', async () => {
    expect(await api.send('/v1/pets', { key, headers: { 'idempotency-key': 'a b' } })).to.have.property('status', 200)
  })
})
