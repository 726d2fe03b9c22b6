import type { Page, PageRequest } from '../page.js'
import { readPage } from '../page.js'
import type { Pet, PetStatus } from '../pet.js'
import type { PetStore } from '../ports/pet-store.js'

export type ListPets = (request: PageRequest<PetStatus>) => Promise<Page<Pet>>

export function makeListPets({ pets }: { pets: PetStore }): ListPets {
  return (request) => readPage((pageRequest) => pets.list(pageRequest), request)
}
