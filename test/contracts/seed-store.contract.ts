import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import { INT64_MAX, INT64_MIN } from '../../src/core/int64.js'
import type { NewOrder, Order } from '../../src/core/order.js'
import type { NewPet, Pet } from '../../src/core/pet.js'
import type { OrderStore } from '../../src/core/ports/order-store.js'
import type { PetIds } from '../../src/core/ports/pet-ids.js'
import type { PetStore } from '../../src/core/ports/pet-store.js'
import type { SeedStore } from '../../src/core/ports/seed-store.js'
import { aPet } from '../support/builders.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { rejection } from './rejection.js'

/** A seed store, and stores of the service that use the same data. */
export interface SeedAdapters {
  readonly seedStore: SeedStore
  readonly pets: PetStore
  readonly petIds: PetIds
  readonly orders: OrderStore
}

export function describeSeedStore(name: string, open: () => Promise<OpenAdapter<SeedAdapters>>, outage?: Outage): void {
  describe(`the seed store ${name}`, () => {
    let opened: OpenAdapter<SeedAdapters>
    let seedStore: SeedStore

    beforeEach(async () => {
      opened = await open()
      seedStore = opened.port.seedStore
    })

    afterEach(() => opened.close())

    const allPets = () => opened.port.pets.list({ limit: 10_000 })
    const allOrders = () => opened.port.orders.list({ limit: 10_000 })

    it('counts all stored pets and orders', async () => {
      const counts = async () => [await seedStore.countPets(), await seedStore.countOrders()]
      expect(await counts()).to.deep.equal([0, 0])
      await seedStore.addPets(newPets(3))
      expect(await counts()).to.deep.equal([3, 0])
      await seedStore.addOrders(newOrders(2))
      expect(await counts()).to.deep.equal([3, 2])
      await opened.port.pets.insert(aPet({ id: await opened.port.petIds.next() }))
      await (await opened.reopen()).seedStore.addOrders(newOrders(1))
      expect(await counts()).to.deep.equal([4, 3])
    })

    it('adds pets unchanged and in order, with ascending IDs', async () => {
      const added = newPets(2_500)
      await seedStore.addPets(added.slice(0, 1))
      await seedStore.addPets(added.slice(1, 1_500))
      await seedStore.addPets(added.slice(1_500))
      expect((await allPets()).map(({ name: petName, categoryId, status }) => ({ name: petName, categoryId, status }))).to.deep.equal(added)
    })

    it('adds orders unchanged and in order, with ascending IDs', async () => {
      const added = newOrders(1_200)
      await seedStore.addOrders(added.slice(0, 1))
      await seedStore.addOrders(added.slice(1))
      expect((await allOrders()).map(({ petId, quantity, status, complete }) => ({ petId, quantity, status, complete }))).to.deep.equal(
        added,
      )
    })

    it('keeps all 64 bits of categories and pet IDs, and ship dates to the millisecond', async () => {
      const categories = [INT64_MAX, INT64_MIN, 9_007_199_254_740_993n, -1n, 0n, 2n ** 32n]
      await seedStore.addPets(categories.map((categoryId) => aNewPet({ categoryId })))
      expect((await allPets()).map(({ categoryId }) => categoryId)).to.deep.equal(categories)

      const shipDate = new Date('1999-12-31T23:59:59.999Z')
      await seedStore.addOrders([aNewOrder({ petId: 2n ** 53n - 1n, quantity: 2_147_483_647, shipDate })])
      expect((await allOrders())[0]).to.deep.include({ petId: 2n ** 53n - 1n, quantity: 2_147_483_647, shipDate })
    })

    it('adds pets that can be listed by status', async () => {
      await seedStore.addPets([aNewPet(), aNewPet({ status: 'sold' }), aNewPet()])
      expect((await opened.port.pets.list({ limit: 5, status: 'sold' })).map(({ status }) => status)).to.deep.equal(['sold'])
      expect(await opened.port.pets.list({ limit: 5, status: 'available' })).to.have.lengthOf(2)
    })

    it('assigns no ID that a replica assigns before, concurrently or afterwards', async () => {
      const replicas = [opened.port, await opened.reopen()] as const
      const assignIds = (count: number) => Promise.all(replicas.flatMap(({ petIds }) => Array.from({ length: count }, () => petIds.next())))
      const before = await assignIds(3)
      const [meanwhile] = await Promise.all([assignIds(200), ...[300, 1, 1000, 7].map((count) => seedStore.addPets(newPets(count)))])
      const afterwards = await assignIds(200)

      const seeded = (await allPets()).map(({ id }: Pet) => id)
      expect(seeded).to.have.lengthOf(1308)
      const ids = [...seeded, ...before, ...meanwhile, ...afterwards]
      expect(new Set(ids).size).to.equal(ids.length)
    })

    it('assigns unique IDs in eight concurrent stores', async () => {
      const replicas = await Promise.all(Array.from({ length: 8 }, () => opened.reopen()))
      await Promise.all(replicas.flatMap((replica) => [replica.seedStore.addPets(newPets(20)), replica.seedStore.addOrders(newOrders(20))]))
      expect(new Set((await allPets()).map(({ id }: Pet) => id)).size).to.equal(160)
      expect(new Set((await allOrders()).map(({ id }: Order) => id)).size).to.equal(160)
    })
  })
  if (outage) describeSeedStoreOutages(name, open, outage)
}

export function describeSeedStoreOutages(name: string, open: () => Promise<OpenAdapter<SeedAdapters>>, outage: Outage): void {
  describe(`the seed store ${name}, during an outage`, () => {
    let opened: OpenAdapter<SeedAdapters>

    beforeEach(async () => {
      opened = await open()
      await opened.port.seedStore.addPets(newPets(3))
    })

    afterEach(async () => {
      await outage.end()
      await opened.close()
    })

    it('throws StoreUnavailable from every method instead of returning 0, and keeps all rows', async () => {
      const { seedStore } = opened.port
      await outage.begin()
      const calls = [seedStore.countPets(), seedStore.countOrders(), seedStore.addPets(newPets(2)), seedStore.addOrders(newOrders(2))]
      for (const reason of await Promise.all(calls.map(rejection))) expect(reason).to.be.instanceOf(StoreUnavailable)
      await outage.end()
      expect(await seedStore.countPets()).to.be.within(3, 5)
      expect((await opened.port.pets.list({ limit: 3 })).map(({ name: petName }) => petName)).to.deep.equal(['Pet 1', 'Pet 2', 'Pet 3'])
    })
  })
}

function aNewPet(overrides: Partial<NewPet> = {}): NewPet {
  return { name: 'Rex', categoryId: 7n, status: 'available', ...overrides }
}

function aNewOrder(overrides: Partial<NewOrder> = {}): NewOrder {
  return { petId: 4n, quantity: 1, status: 'placed', complete: false, ...overrides }
}

function newPets(count: number): NewPet[] {
  return Array.from({ length: count }, (_, index) => aNewPet({ name: `Pet ${index + 1}`, categoryId: BigInt(index) }))
}

function newOrders(count: number): NewOrder[] {
  return Array.from({ length: count }, (_, index) => aNewOrder({ petId: BigInt(index + 1), quantity: index + 1 }))
}
