import { expect } from 'chai'
import { MemoryIdempotencyStore } from '../../src/adapters/memory/memory-idempotency-store.js'
import { MemoryPetIds } from '../../src/adapters/memory/memory-pet-ids.js'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { DomainError, IdempotencyKeyReused, StoreUnavailable } from '../../src/core/errors.js'
import type { NewPet, Pet } from '../../src/core/pet.js'
import type { IdempotencyScope } from '../../src/core/ports/idempotency-store.js'
import type { PetStore } from '../../src/core/ports/pet-store.js'
import { makeCreatePet } from '../../src/core/use-cases/create-pet.js'
import { rejection } from '../contracts/rejection.js'
import { MovableClock } from '../support/movable-clock.js'

const SCOPE: IdempotencyScope = { keyId: 'key_one', idempotencyKey: 'retry-1' }

describe('creating a pet', () => {
  it('stores it under a new ID and returns the stored pet', async () => {
    const { createPet, pets } = aStore()
    const { pet, isReplay } = await createPet(aNewPet())
    expect(pet).to.deep.equal({ id: 1n, ...aNewPet() })
    expect(isReplay).to.equal(false)
    expect(await pets.find(pet.id)).to.deep.equal(pet)
  })

  it('without an idempotency key creates a new pet each time', async () => {
    const { createPet, pets } = aStore()
    await Promise.all(Array.from({ length: 20 }, () => createPet(aNewPet())))
    expect(await pets.list({ limit: 100 })).to.have.lengthOf(20)
  })

  it('fails if the claimed ID belongs to a different pet', async () => {
    const clock = new MovableClock()
    const pets = new MemoryPetStore([{ id: 1n, ...aNewPet({ name: 'Another' }) }])
    const createPet = makeCreatePet({ pets, petIds: new MemoryPetIds(), idempotency: new MemoryIdempotencyStore(clock) })
    expect(await rejection(createPet(aNewPet({ name: 'Lost' }), SCOPE))).to.be.instanceOf(Error)
    expect((await pets.find(1n))?.name).to.equal('Another')
  })

  it('ignores an ID from the client', async () => {
    const { createPet } = aStore()
    const withId = { ...aNewPet(), id: 99n }
    expect((await createPet(withId)).pet.id).to.equal(1n)
    expect((await createPet(withId, SCOPE)).pet.id).to.equal(2n)
  })

  it('fails if an ID was assigned twice, and does not return the other pet', async () => {
    const { createPet, pets } = aStore({ pets: new MemoryPetStore([{ id: 1n, ...aNewPet({ name: 'First' }) }]) })
    expect(await rejection(createPet(aNewPet({ name: 'Second' }))))
      .to.be.instanceOf(Error)
      .and.not.instanceOf(DomainError)
    expect((await pets.find(1n))?.name).to.equal('First')
  })

  it('fails if an ID was assigned twice, even if both pets look alike', async () => {
    const { createPet } = aStore({ pets: new MemoryPetStore([{ id: 1n, ...aNewPet() }]) })
    expect(await rejection(createPet(aNewPet()))).to.be.instanceOf(Error)
  })
})

describe('creating a pet with an idempotency key', () => {
  it('creates it once: retries return the same pet as replayed', async () => {
    const { createPet, pets } = aStore()
    const first = await createPet(aNewPet(), SCOPE)
    expect(first.isReplay).to.equal(false)
    for (let retry = 0; retry < 3; retry++) expect(await createPet(aNewPet(), SCOPE)).to.deep.equal({ pet: first.pet, isReplay: true })
    expect(await pets.list({ limit: 100 })).to.deep.equal([first.pet])
  })

  it('creates one pet for 50 concurrent requests, of which exactly one is not a replay', async () => {
    const { createPet, pets } = aStore()
    const created = await Promise.all(Array.from({ length: 50 }, () => createPet(aNewPet(), SCOPE)))
    expect(await pets.list({ limit: 100 })).to.have.lengthOf(1)
    for (const { pet } of created) expect(pet).to.deep.equal(created[0]?.pet)
    expect(created.filter(({ isReplay }) => !isReplay)).to.have.lengthOf(1)
  })

  for (const [what, other] of [
    ['name', { name: 'Rexy' }],
    ['name, by case only', { name: 'rex' }],
    ['category', { categoryId: 8n }],
    ['category, by less than a double can represent', { categoryId: 9_007_199_254_740_993n }],
    ['status', { status: 'sold' }],
  ] satisfies [string, Partial<NewPet>][]) {
    it(`is rejected for a pet with a different ${what}, and changes nothing`, async () => {
      const { createPet, pets } = aStore()
      const { pet } = await createPet(aNewPet({ categoryId: 9_007_199_254_740_992n }), SCOPE)
      const changed = aNewPet({ categoryId: 9_007_199_254_740_992n, ...other })
      expect(await rejection(createPet(changed, SCOPE)))
        .to.be.instanceOf(IdempotencyKeyReused)
        .with.property('code', 'idempotency_key_reused')
      expect(await pets.list({ limit: 100 })).to.deep.equal([pet])
      expect(await createPet(aNewPet({ categoryId: 9_007_199_254_740_992n }), SCOPE)).to.deep.equal({ pet, isReplay: true })
    })
  }

  it('distinguishes pets whose fields look alike when they are concatenated', async () => {
    const { createPet } = aStore()
    await createPet(aNewPet({ name: 'a","1', categoryId: 2n }), SCOPE)
    expect(await rejection(createPet(aNewPet({ name: 'a', categoryId: 12n }), SCOPE))).to.be.instanceOf(IdempotencyKeyReused)
  })

  it('does not depend on the order of the fields', async () => {
    const { createPet } = aStore()
    const { pet } = await createPet({ name: 'Rex', categoryId: 7n, status: 'sold' }, SCOPE)
    expect(await createPet({ status: 'sold', categoryId: 7n, name: 'Rex' }, SCOPE)).to.deep.equal({ pet, isReplay: true })
  })

  it('creates another pet for a different idempotency key, and for the same idempotency key from a different caller', async () => {
    const { createPet } = aStore()
    const ids = await Promise.all(
      [SCOPE, { ...SCOPE, idempotencyKey: 'retry-2' }, { ...SCOPE, keyId: 'key_two' }].map(async (scope) => {
        const { pet, isReplay } = await createPet(aNewPet(), scope)
        expect(isReplay).to.equal(false)
        return pet.id
      }),
    )
    expect(new Set(ids).size).to.equal(3)
  })

  it('recovers from a crash between its two writes: the retry stores the pet under the claimed ID', async () => {
    const { createPet, pets } = aStore()
    const insert = pets.insert.bind(pets)
    pets.insert = () => Promise.reject(new StoreUnavailable('Crashed before the write'))
    expect(await rejection(createPet(aNewPet(), SCOPE))).to.be.instanceOf(StoreUnavailable)
    pets.insert = insert
    expect(await createPet(aNewPet(), SCOPE)).to.deep.equal({ pet: { id: 1n, ...aNewPet() }, isReplay: false })
    expect(await createPet(aNewPet(), SCOPE)).to.have.property('isReplay', true)
    expect(await pets.list({ limit: 100 })).to.have.lengthOf(1)
  })

  it('returns the pet on the retry if it was stored but the response was lost', async () => {
    const { createPet, pets } = aStore()
    const insert = pets.insert.bind(pets)
    pets.insert = (pet) => insert(pet).then(() => Promise.reject(new StoreUnavailable('Crashed after the write')))
    expect(await rejection(createPet(aNewPet(), SCOPE))).to.be.instanceOf(StoreUnavailable)
    pets.insert = insert
    expect(await createPet(aNewPet(), SCOPE)).to.deep.equal({ pet: { id: 1n, ...aNewPet() }, isReplay: true })
    expect(await pets.list({ limit: 100 })).to.have.lengthOf(1)
  })
})

describe('creating a pet with a signal that is aborted', () => {
  for (const [what, abortAfter, expected] of [
    ['the ID is assigned', 'next', { claims: 0, inserts: 0 }],
    ['the ID is claimed', 'claim', { claims: 1, inserts: 0 }],
  ] as const) {
    it(`while ${what} starts no further write, and throws the reason`, async () => {
      const reason = new StoreUnavailable('Too late')
      const controller = new AbortController()
      const abortIn = (step: string) => step === abortAfter && controller.abort(reason)
      const written = { claims: 0, inserts: 0 }
      const createPet = makeCreatePet({
        petIds: { next: async () => (abortIn('next'), 1n) },
        idempotency: { claim: async (_scope, offered) => ((written.claims += 1), abortIn('claim'), offered) },
        pets: Object.assign(new MemoryPetStore(), { insert: async () => ((written.inserts += 1), 'inserted' as const) }),
      })
      expect(await rejection(createPet(aNewPet(), SCOPE, controller.signal))).to.equal(reason)
      expect(written).to.deep.equal(expected)
    })
  }

  it('after its last write returns the pet', async () => {
    const controller = new AbortController()
    const pets = new MemoryPetStore()
    const insert = pets.insert.bind(pets)
    const { createPet } = aStore({ pets: Object.assign(pets, { insert: (pet: Pet) => (controller.abort(), insert(pet)) }) })
    expect((await createPet(aNewPet(), SCOPE, controller.signal)).pet).to.include(aNewPet())
  })
})

function aNewPet(overrides: Partial<NewPet> = {}): NewPet {
  return { name: 'Rex', categoryId: 7n, status: 'available', ...overrides }
}

function aStore({ pets = new MemoryPetStore() }: { pets?: PetStore } = {}) {
  const idempotency = new MemoryIdempotencyStore(new MovableClock())
  return { createPet: makeCreatePet({ pets, petIds: new MemoryPetIds(), idempotency }), pets }
}
