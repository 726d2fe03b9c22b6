import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import type { PageRequest } from '../../src/core/page.js'
import type { Pet, PetStatus } from '../../src/core/pet.js'
import { Gate } from './gate.js'

/** The memory store, except that `list` waits for the gate. */
export class HeldPetStore extends MemoryPetStore {
  readonly gate = new Gate()

  override async list(request: PageRequest<PetStatus>): Promise<readonly Pet[]> {
    await this.gate.pass()
    return super.list(request)
  }
}
