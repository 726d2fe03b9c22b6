import { MAX_ASSIGNED_ID } from '../../core/int64.js'
import type { PetIds } from '../../core/ports/pet-ids.js'

export class MemoryPetIds implements PetIds {
  #last: bigint

  /** `last`: the last ID that has been assigned, 0 or more. The first new ID is `last` + 1. */
  constructor(last = 0n) {
    this.#last = last
  }

  async next(): Promise<bigint> {
    if (this.#last >= MAX_ASSIGNED_ID) throw new Error('All pet IDs up to 2^53 − 1 have been assigned')
    return ++this.#last
  }
}
