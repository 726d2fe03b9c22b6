import { expect } from 'chai'
import { NoPetsToOrder } from '../../src/core/errors.js'
import { isPetName, PET_STATUSES } from '../../src/core/pet.js'
import { ORDER_STATUSES } from '../../src/core/order.js'
import type { NewOrder } from '../../src/core/order.js'
import type { NewPet } from '../../src/core/pet.js'
import { makeSeed } from '../../src/core/use-cases/seed.js'
import { rejection } from '../contracts/rejection.js'
import { MemorySeedStore } from '../support/memory-seed-store.js'

describe('seeding', () => {
  it('adds only the missing rows of each kind, and never removes any', async () => {
    const { seed, store } = makeSeeder()
    for (const [target, petsAdded, ordersAdded] of [
      [{ pets: 25, orders: 7 }, 25, 7],
      [{ pets: 25, orders: 7 }, 0, 0],
      [{ pets: 30, orders: 7 }, 5, 0],
      [{ pets: 30, orders: 9 }, 0, 2],
      [{ pets: 0, orders: 1 }, 0, 0],
    ] as const)
      expect(await seed(target)).to.deep.equal({ petsAdded, ordersAdded })
    expect(await store.totals()).to.deep.equal({ pets: 30, orders: 9 })
  })

  it('counts rows that were added by other means', async () => {
    const { seed, store } = makeSeeder()
    await store.addPets([{ name: 'Own', categoryId: 1n, status: 'sold' }])
    expect(await seed({ pets: 3, orders: 0 })).to.deep.equal({ petsAdded: 2, ordersAdded: 0 })
  })

  it('adds rows in batches of 1 to 1,000', async () => {
    for (const [pets, orders, sizes] of [
      [0, 0, []],
      [1, 0, [1]],
      [1_000, 0, [1_000]],
      [1_001, 1, [1_000, 1, 1]],
      [2_500, 2_000, [1_000, 1_000, 500, 1_000, 1_000]],
    ] as const) {
      const { seed, store } = makeSeeder()
      await seed({ pets, orders })
      expect(store.batches).to.deep.equal(sizes)
    }
  })

  for (const failAfter of [0, 1, 2, 3, 4]) {
    it(`that failed in batch ${failAfter + 1} is completed exactly by the next run`, async () => {
      const { seed, store } = makeSeeder()
      store.failAfter = failAfter
      expect(await rejection(seed({ pets: 2_500, orders: 1_500 }))).to.equal(store.failure)
      const before = await store.totals()
      expect(before.pets + before.orders)
        .to.be.greaterThan(0)
        .and.lessThan(4_000)

      store.failAfter = Infinity
      const { petsAdded, ordersAdded } = await seed({ pets: 2_500, orders: 1_500 })
      expect([petsAdded, ordersAdded]).to.deep.equal([2_500 - before.pets, 1_500 - before.orders])
      expect(await store.totals()).to.deep.equal({ pets: 2_500, orders: 1_500 })
    })
  }

  it('reports its progress in rows: 0 at the start, more after each batch, the total of this run at the end', async () => {
    const { seed } = makeSeeder()
    const reported: (readonly [number, number])[] = []
    await seed({ pets: 1_500, orders: 1_200 }, (done, total) => reported.push([done, total]))
    expect(reported).to.deep.equal([0, 1_000, 1_500, 2_500, 2_700].map((done) => [done, 2_700]))

    reported.length = 0
    await seed({ pets: 1_600, orders: 1_200 }, (done, total) => reported.push([done, total]))
    expect(reported).to.deep.equal([
      [0, 100],
      [100, 100],
    ])
  })

  it('reports its progress once if there is nothing to add', async () => {
    const reported: (readonly [number, number])[] = []
    await makeSeeder().seed({ pets: 0, orders: 0 }, (done, total) => reported.push([done, total]))
    expect(reported).to.deep.equal([[0, 0]])
  })

  it('adds pets and orders that the service would accept, of every status', async () => {
    const { seed, store } = makeSeeder()
    await seed({ pets: 100, orders: 100 })
    const pets = await store.pets.list({ limit: Infinity })
    for (const { name, categoryId } of pets) {
      expect(isPetName(name) && name.trim() === name, name).to.equal(true)
      expect(categoryId > 0n).to.equal(true)
    }
    expect(new Set(pets.map(({ status }) => status))).to.deep.equal(new Set(PET_STATUSES))
    expect(new Set(pets.map(({ name }) => name)).size).to.equal(100)

    const orders = await store.orders.list({ limit: Infinity })
    for (const { petId, quantity, status, complete } of orders) {
      expect(pets.some(({ id }) => id === petId) && Number.isInteger(quantity) && quantity > 0).to.equal(true)
      expect(complete).to.equal(status === 'delivered')
    }
    expect(new Set(orders.map(({ status }) => status))).to.deep.equal(new Set(ORDER_STATUSES))
  })

  it('rejects orders if there are no pets', async () => {
    const { seed, store } = makeSeeder()
    expect(await rejection(seed({ pets: 0, orders: 1 }))).to.be.instanceOf(NoPetsToOrder)
    expect(await store.countOrders()).to.equal(0)
  })

  it('in several runs adds the same pets as in one run', async () => {
    const [pieces, once] = [makeSeeder(), makeSeeder()]
    for (const pets of [3, 4, 1_200]) await pieces.seed({ pets, orders: pets })
    await once.seed({ pets: 1_200, orders: 1_200 })
    expect(await pieces.store.pets.list({ limit: Infinity })).to.deep.equal(await once.store.pets.list({ limit: Infinity }))
    expect(await pieces.store.countOrders()).to.equal(1_200)
  })
})

/** Records the sizes of its batches and can fail in the middle of one. */
class WatchedSeedStore extends MemorySeedStore {
  readonly batches: number[] = []
  readonly failure = new Error('down')
  failAfter = Infinity

  override async addPets(pets: readonly NewPet[]): Promise<void> {
    await this.#addBatch(pets, (rows) => super.addPets(rows))
  }

  override async addOrders(orders: readonly NewOrder[]): Promise<void> {
    await this.#addBatch(orders, (rows) => super.addOrders(rows))
  }

  async totals(): Promise<{ pets: number; orders: number }> {
    return { pets: await this.countPets(), orders: await this.countOrders() }
  }

  async #addBatch<Row>(batch: readonly Row[], add: (rows: readonly Row[]) => Promise<void>): Promise<void> {
    const fails = this.batches.length >= this.failAfter
    this.batches.push(batch.length)
    await add(fails ? batch.slice(0, batch.length / 2) : batch)
    if (fails) throw this.failure
  }
}

function makeSeeder() {
  const store = new WatchedSeedStore()
  const makeRows = makeSeed({ seedStore: store, pets: store.pets })
  const seed = (target: Parameters<typeof makeRows>[0], onProgress: Parameters<typeof makeRows>[1] = () => {}) =>
    makeRows(target, onProgress)
  return { seed, store }
}
