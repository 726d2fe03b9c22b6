import type { Collection } from 'mongodb'
import type { NewOrder } from '../../core/order.js'
import type { NewPet } from '../../core/pet.js'
import type { SeedStore } from '../../core/ports/seed-store.js'
import type { MongoConnection } from './mongo-connection.js'
import { MongoCounter } from './mongo-counter.js'
import type { OrderDocument } from './mongo-order-store.js'
import { getOrderCollection } from './mongo-order-store.js'
import type { PetDocument } from './mongo-pet-store.js'
import { getPetCollection } from './mongo-pet-store.js'

/** Longer than the timeout of a request: counting millions of rows and inserting a thousand rows at a time can take a long time. */
export const BULK_TIMEOUT_MS = 60_000
const BULK_TIME_LIMIT = { maxTimeMS: BULK_TIMEOUT_MS }

/** Requires a connection with `callTimeoutMs` set to `BULK_TIMEOUT_MS`. */
export class MongoSeedStore implements SeedStore {
  readonly #pets: Collection<PetDocument>
  readonly #orders: Collection<OrderDocument>
  readonly #petCounter: MongoCounter
  readonly #orderCounter: MongoCounter

  constructor(private readonly mongo: MongoConnection) {
    this.#pets = getPetCollection(mongo.db)
    this.#orders = getOrderCollection(mongo.db)
    this.#petCounter = new MongoCounter(mongo, 'pets')
    this.#orderCounter = new MongoCounter(mongo, 'orders')
  }

  async countPets(): Promise<number> {
    return this.mongo.call('pets.count', () => this.#pets.countDocuments({}, BULK_TIME_LIMIT), BULK_TIMEOUT_MS)
  }

  async countOrders(): Promise<number> {
    return this.mongo.call('orders.count', () => this.#orders.countDocuments({}, BULK_TIME_LIMIT), BULK_TIMEOUT_MS)
  }

  async addPets(pets: readonly NewPet[]): Promise<void> {
    const { first } = await this.#petCounter.reserveExactly(pets.length)
    const documents = pets.map(({ name, categoryId, status }, index) => ({ _id: first + BigInt(index), name, categoryId, status }))
    await this.mongo.call('pets.insert', () => this.#pets.insertMany(documents, BULK_TIME_LIMIT), BULK_TIMEOUT_MS)
  }

  async addOrders(orders: readonly NewOrder[]): Promise<void> {
    const { first } = await this.#orderCounter.reserveExactly(orders.length)
    const documents = orders.map((order, index) => ({ _id: first + BigInt(index), ...order }))
    await this.mongo.call('orders.insert', () => this.#orders.insertMany(documents, BULK_TIME_LIMIT), BULK_TIMEOUT_MS)
  }
}
