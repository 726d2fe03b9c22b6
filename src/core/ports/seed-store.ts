import type { NewOrder } from '../order.js'
import type { NewPet } from '../pet.js'

/** Fills a store in bulk. Every method throws `StoreUnavailable` when the store does not answer in time: any part of the rows may then be there. */
export interface SeedStore {
  countPets(): Promise<number>
  countOrders(): Promise<number>

  /** Adds a pet for each, in order, with ids that nothing else gets. 1 or more. */
  addPets(pets: readonly NewPet[]): Promise<void>

  /** Adds an order for each, in order, with ids that no other order gets. 1 or more. */
  addOrders(orders: readonly NewOrder[]): Promise<void>
}
