import { MemoryPetIds } from '../../src/adapters/memory/memory-pet-ids.js'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { SortedRows } from '../../src/adapters/memory/sorted-rows.js'
import type { NewOrder, Order, OrderStatus } from '../../src/core/order.js'
import type { NewPet } from '../../src/core/pet.js'
import type { OrderStore } from '../../src/core/ports/order-store.js'
import type { SeedStore } from '../../src/core/ports/seed-store.js'

/** A seed store around the memory adapters. The service itself seeds only MongoDB. */
export class MemorySeedStore implements SeedStore {
  readonly pets = new MemoryPetStore()
  readonly petIds = new MemoryPetIds()
  readonly orders: OrderStore = { list: async (request) => this.#orders.list(request) }
  readonly #orders = new SortedRows<Order, OrderStatus>()
  readonly #orderIds = new MemoryPetIds()

  async countPets(): Promise<number> {
    return (await this.pets.list({ limit: Infinity })).length
  }

  async countOrders(): Promise<number> {
    return this.#orders.list({ limit: Infinity }).length
  }

  async addPets(pets: readonly NewPet[]): Promise<void> {
    for (const pet of pets) await this.pets.insert({ id: await this.petIds.next(), ...pet })
  }

  async addOrders(orders: readonly NewOrder[]): Promise<void> {
    for (const order of orders) this.#orders.insert({ id: await this.#orderIds.next(), ...order })
  }
}
