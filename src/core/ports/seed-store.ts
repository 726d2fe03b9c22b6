import type { NewOrder } from '../order.js'
import type { NewPet } from '../pet.js'

/**
 * Adds rows in bulk. Every method throws `StoreUnavailable` if the store does not respond in time. In that case, all, some or none of the
 * rows were stored.
 */
export interface SeedStore {
  countPets(): Promise<number>
  countOrders(): Promise<number>

  /** Adds 1 or more pets in order and assigns each a unique ID. */
  addPets(pets: readonly NewPet[]): Promise<void>

  /** Adds 1 or more orders in order and assigns each a unique ID. */
  addOrders(orders: readonly NewOrder[]): Promise<void>
}
