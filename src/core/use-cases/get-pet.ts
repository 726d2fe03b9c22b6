import { PetNotFound } from '../errors.js'
import type { Pet } from '../pet.js'
import type { PetStore } from '../ports/pet-store.js'

/** Pass `undefined` for an ID that cannot be the ID of a pet. Throws `PetNotFound` if the pet does not exist. */
export type GetPet = (id: bigint | undefined) => Promise<Pet>

export function makeGetPet({ pets }: { pets: PetStore }): GetPet {
  return async (id) => {
    const pet = id === undefined ? undefined : await pets.find(id)
    if (!pet) throw new PetNotFound()
    return pet
  }
}
