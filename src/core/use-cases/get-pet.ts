import { OperationRemoved, PetNotFound } from '../errors.js'
import type { Pet } from '../pet.js'
import type { Clock } from '../ports/clock.js'
import type { PetStore } from '../ports/pet-store.js'

/** Fetching one pet ends on 5 December 2030, 00:00 UTC; listing with a filter replaces it. */
export const GET_PET_REMOVED_AT_MS = Date.UTC(2030, 11, 5)

/** Throws `OperationRemoved` once the operation has ended, whatever is asked of it. */
export type EnsureGetPetOffered = () => void

export function makeEnsureGetPetOffered({ clock }: { clock: Clock }): EnsureGetPetOffered {
  return () => {
    if (clock.nowMs() >= GET_PET_REMOVED_AT_MS) throw new OperationRemoved()
  }
}

/** `id` is absent when what the caller sent can be no id. Throws `PetNotFound`, and `OperationRemoved` once the operation has ended. */
export type GetPet = (id: bigint | undefined) => Promise<Pet>

export function makeGetPet({ pets, clock }: { pets: PetStore; clock: Clock }): GetPet {
  const ensureOffered = makeEnsureGetPetOffered({ clock })
  return async (id) => {
    ensureOffered()
    const pet = id === undefined ? undefined : await pets.find(id)
    if (!pet) throw new PetNotFound()
    return pet
  }
}
