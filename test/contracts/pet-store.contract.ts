import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import { INT64_MAX, INT64_MIN, MAX_ASSIGNED_ID } from '../../src/core/int64.js'
import { PET_STATUSES } from '../../src/core/pet.js'
import type { PetStore } from '../../src/core/ports/pet-store.js'
import { aPet } from '../support/builders.js'
import { itListsByKeyset } from './keyset-list.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { rejection } from './rejection.js'

export function describePetStore(name: string, open: () => Promise<OpenAdapter<PetStore>>, outage?: Outage): void {
  describe(`the pet store ${name}`, () => {
    let opened: OpenAdapter<PetStore>
    let pets: PetStore

    beforeEach(async () => {
      opened = await open()
      pets = opened.port
    })

    afterEach(() => opened.close())

    it('finds an inserted pet with all its fields, in every status', async () => {
      for (const [index, status] of PET_STATUSES.entries()) {
        const pet = aPet({ id: BigInt(index + 1), name: `Pet ${index}`, status })
        expect(await pets.insert(pet)).to.equal('inserted')
        expect(await pets.find(pet.id)).to.deep.equal(pet)
      }
    })

    it('keeps all 64 bits of a category', async () => {
      const categories = [INT64_MAX, INT64_MIN, 9_007_199_254_740_993n, -9_007_199_254_740_993n, 0n, -1n, 2n ** 32n, 1n]
      const stored = categories.map((categoryId, index) => aPet({ id: BigInt(index + 1), categoryId }))
      for (const pet of stored) await pets.insert(pet)
      for (const pet of stored) expect(await pets.find(pet.id)).to.deep.equal(pet)
      expect(await pets.list({ limit: 100 })).to.deep.equal(stored)
    })

    it('keeps every code point of a name', async () => {
      const names = [
        'Ré',
        'Re\u0301',
        '\u{1f436}\u{1f3fd}',
        '$where',
        'a.b',
        '__proto__',
        '\u05d0\u202e',
        'O\'Neil "x" \\',
        'é'.repeat(200),
      ]
      for (const [index, petName] of names.entries()) {
        await pets.insert(aPet({ id: BigInt(index + 1), name: petName }))
        expect((await pets.find(BigInt(index + 1)))?.name).to.equal(petName)
      }
    })

    it('accepts IDs from 1 to 2^53 − 1', async () => {
      for (const id of [1n, 2n ** 31n, 2n ** 32n, MAX_ASSIGNED_ID]) {
        expect(await pets.insert(aPet({ id }))).to.equal('inserted')
        expect(await pets.find(id)).to.deep.equal(aPet({ id }))
      }
    })

    it('returns undefined for an ID without a pet, including 0, negative IDs and the ends of int64', async () => {
      await pets.insert(aPet({ id: 1n }))
      for (const id of [2n, 0n, -1n, 2n ** 32n + 1n, INT64_MIN, INT64_MAX]) expect(await pets.find(id)).to.equal(undefined)
    })

    it('rejects a taken ID and leaves the first pet unchanged', async () => {
      const firstPet = aPet({ id: 5n, name: 'First', status: 'available' })
      await pets.insert(firstPet)
      expect(await pets.insert(aPet({ id: 5n, name: 'Second', categoryId: 99n, status: 'sold' }))).to.equal('taken')
      expect(await pets.insert(firstPet)).to.equal('taken')
      expect(await pets.find(5n)).to.deep.equal(firstPet)
      expect(await pets.list({ limit: 100 })).to.deep.equal([firstPet])
      expect(await pets.list({ limit: 100, status: 'sold' })).to.deep.equal([])
    })

    it('inserts exactly one of 50 pets with the same ID concurrently on two replicas', async () => {
      const replicas = [pets, await opened.reopen()] as const
      const duplicates = Array.from({ length: 50 }, (_, index) => aPet({ id: 8n, name: `Twin ${index}` }))
      const outcomes = await Promise.all(duplicates.map((duplicate, index) => (replicas[index % 2] as PetStore).insert(duplicate)))
      const winners = duplicates.filter((_, index) => outcomes[index] === 'inserted')
      expect(winners).to.have.lengthOf(1)
      expect(outcomes.filter((outcome) => outcome === 'taken')).to.have.lengthOf(49)
      for (const replica of replicas) expect(await replica.find(8n)).to.deep.equal(winners[0])
      expect(await pets.list({ limit: 100 })).to.deep.equal(winners)
    })

    it('inserts pets that are added at the same time, except those whose ID is taken', async () => {
      const ids = Array.from({ length: 20 }, (_, index) => BigInt(index + 1))
      for (const id of [3n, 20n]) await pets.insert(aPet({ id, name: 'First' }))
      const outcomes = await Promise.all(ids.map((id) => pets.insert(aPet({ id, name: 'Second' }))))
      expect(outcomes).to.deep.equal(ids.map((id) => ([3n, 20n].includes(id) ? 'taken' : 'inserted')))
      expect((await pets.list({ limit: 100 })).map(({ name: petName }) => petName)).to.deep.equal(
        ids.map((id) => ([3n, 20n].includes(id) ? 'First' : 'Second')),
      )
    })

    it('finds an inserted pet immediately on another replica and after a restart', async () => {
      await pets.insert(aPet({ id: 3n }))
      const another = await opened.reopen()
      expect(await another.find(3n)).to.deep.equal(aPet({ id: 3n }))
      expect(await another.list({ limit: 1 })).to.deep.equal([aPet({ id: 3n })])
      expect(await another.insert(aPet({ id: 3n }))).to.equal('taken')
    })

    it('is not affected by later changes of the passed object', async () => {
      const passed = { ...aPet({ id: 3n }) }
      await pets.insert(passed)
      passed.name = 'Changed'
      expect(await pets.find(3n)).to.deep.equal(aPet({ id: 3n }))
    })

    it('lists each pet at most once, and each earlier pet exactly once, across pages while pets are inserted', async () => {
      const before = Array.from({ length: 30 }, (_, index) => aPet({ id: BigInt(10 * (index + 1)) }))
      for (const pet of before) await pets.insert(pet)
      const seen: bigint[] = []
      for (let page = await pets.list({ limit: 4 }); page.length > 0; page = await pets.list({ limit: 4, after: seen.at(-1) as bigint })) {
        seen.push(...page.map(({ id }) => id))
        expect(seen.length).to.be.below(100)
        const last = seen.at(-1) as bigint
        await pets.insert(aPet({ id: last - 1n }))
        if (last < 300n) await pets.insert(aPet({ id: last + 5n }))
      }
      expect(seen).to.include.members(before.map(({ id }) => id))
      expect(new Set(seen).size).to.equal(seen.length)
    })

    itListsByKeyset(
      PET_STATUSES,
      (id, status) => aPet({ id, status, name: `Pet ${id}`, categoryId: INT64_MAX - id }),
      async (rows) => {
        for (const row of rows) await pets.insert(row)
        return (request) => pets.list(request)
      },
    )
  })
  if (outage) describePetStoreOutages(name, open, outage)
}

export function describePetStoreOutages(name: string, open: () => Promise<OpenAdapter<PetStore>>, outage: Outage): void {
  describe(`the pet store ${name}, during an outage`, () => {
    let opened: OpenAdapter<PetStore>
    let pets: PetStore

    beforeEach(async () => {
      opened = await open()
      pets = opened.port
      await pets.insert(aPet({ id: 1n }))
    })

    afterEach(async () => {
      await outage.end()
      await opened.close()
    })

    it('throws StoreUnavailable from every method instead of returning an empty result', async () => {
      await outage.begin()
      const calls = [pets.find(1n), pets.find(2n), pets.list({ limit: 5 }), pets.insert(aPet({ id: 2n }))]
      for (const reason of await Promise.all(calls.map(rejection))) expect(reason).to.be.instanceOf(StoreUnavailable)
    })

    it('loses no acknowledged pet, and applies a failed insert completely or not at all', async () => {
      const attempted = aPet({ id: 2n, status: 'sold' })
      await outage.begin()
      await rejection(pets.insert(attempted))
      await outage.end()
      expect(await pets.find(1n)).to.deep.equal(aPet({ id: 1n }))
      expect([undefined, attempted]).to.deep.include(await pets.find(2n))
      expect(await pets.insert(attempted)).to.be.oneOf(['inserted', 'taken'])
      expect(await pets.list({ limit: 5 })).to.deep.equal([aPet({ id: 1n }), attempted])
    })
  })
}
