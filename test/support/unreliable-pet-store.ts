import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import type { PageRequest } from '../../src/core/page.js'
import type { Pet, PetStatus } from '../../src/core/pet.js'

/** The memory store, except that it throws `failure` while one is set. */
export class UnreliablePetStore extends MemoryPetStore {
  failure: Error | undefined

  override async insert(pet: Pet): Promise<'inserted' | 'taken'> {
    if (this.failure) throw this.failure
    return super.insert(pet)
  }

  override async find(id: bigint): Promise<Pet | undefined> {
    if (this.failure) throw this.failure
    return super.find(id)
  }

  override async list(request: PageRequest<PetStatus>): Promise<readonly Pet[]> {
    if (this.failure) throw this.failure
    return super.list(request)
  }
}
