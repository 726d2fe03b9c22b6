import type { PageRequest } from '../page.js'
import type { Pet, PetStatus } from '../pet.js'

/** Every method throws `StoreUnavailable` if the store does not respond in time. */
export interface PetStore {
  /**
   * Adds a pet. The pet is durable when the promise resolves: no acknowledged pet is ever lost.
   * Returns `taken` if a pet with this ID exists, and leaves that pet unchanged. If inserts of one ID run concurrently, exactly one succeeds.
   */
  insert(pet: Pet): Promise<'inserted' | 'taken'>

  /** Returns `undefined` if the pet does not exist. */
  find(id: bigint): Promise<Pet | undefined>

  /** Returns up to `limit` pets in ascending ID order, or an empty array. A pet that is inserted concurrently may or may not appear. */
  list(request: PageRequest<PetStatus>): Promise<readonly Pet[]>
}
