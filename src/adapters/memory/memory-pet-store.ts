import type { PageRequest } from '../../core/page.js'
import type { Pet, PetStatus } from '../../core/pet.js'
import type { PetStore } from '../../core/ports/pet-store.js'
import { SortedRows } from './sorted-rows.js'

export class MemoryPetStore implements PetStore {
  readonly #rows = new SortedRows<Pet, PetStatus>()

  constructor(pets: readonly Pet[] = []) {
    for (const pet of pets) this.#rows.insert(pet)
  }

  async insert(pet: Pet): Promise<'inserted' | 'taken'> {
    return this.#rows.insert(pet) ? 'inserted' : 'taken'
  }

  async find(id: bigint): Promise<Pet | undefined> {
    return this.#rows.find(id)
  }

  async list(request: PageRequest<PetStatus>): Promise<readonly Pet[]> {
    return this.#rows.list(request)
  }
}
