import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import type { PageRequest } from '../../src/core/page.js'
import type { Pet, PetStatus } from '../../src/core/pet.js'

/** The real store, but listings complete only after `release`. */
export class HeldPetStore extends MemoryPetStore {
  /** Number of listings that have begun. */
  heldCount = 0
  release: () => void = () => undefined
  readonly #released = new Promise<void>((resolve) => (this.release = resolve))

  override async list(request: PageRequest<PetStatus>): Promise<readonly Pet[]> {
    this.heldCount += 1
    await this.#released
    return super.list(request)
  }
}
