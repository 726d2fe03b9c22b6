import type { PageRequest } from '../page.js'
import type { Pet, PetStatus } from '../pet.js'

/** Every method throws `StoreUnavailable` when the store does not answer in time. */
export interface PetStore {
  /**
   * Adds a pet. Resolved means durable: no acknowledged pet is ever lost.
   * `taken` when a pet of this id is there already; that pet stays as it is. Of concurrent inserts of one id one wins.
   */
  insert(pet: Pet): Promise<'inserted' | 'taken'>

  /** Absence is `undefined`. */
  find(id: bigint): Promise<Pet | undefined>

  /** Up to `limit` pets in ascending id; none is an empty array. A pet inserted meanwhile may or may not appear. */
  list(request: PageRequest<PetStatus>): Promise<readonly Pet[]>
}
