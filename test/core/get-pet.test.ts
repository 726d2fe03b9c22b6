import { expect } from 'chai'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { PetNotFound, StoreUnavailable } from '../../src/core/errors.js'
import type { Pet } from '../../src/core/pet.js'
import { makeGetPet } from '../../src/core/use-cases/get-pet.js'
import { aPet } from '../support/builders.js'
import { rejection } from '../contracts/rejection.js'

describe('getting a pet', () => {
  const getPet = makeGetPet({ pets: new MemoryPetStore([aPet({ id: 5n, name: 'Luna' })]) })

  it('returns the pet with the ID', async () => {
    expect(await getPet(5n)).to.deep.equal(aPet({ id: 5n, name: 'Luna' }))
  })

  it('throws PetNotFound if no pet has the ID, or if it cannot be an ID', async () => {
    for (const id of [6n, 0n, -5n, undefined]) {
      expect(await rejection(getPet(id)))
        .to.be.instanceOf(PetNotFound)
        .with.property('code', 'pet_not_found')
    }
  })

  it('does not report an outage as a missing pet', async () => {
    const getPetDuringOutage = makeGetPet({ pets: new UnavailablePetStore() })
    expect(await rejection(getPetDuringOutage(5n))).to.be.instanceOf(StoreUnavailable)
  })
})

class UnavailablePetStore extends MemoryPetStore {
  override async find(): Promise<Pet | undefined> {
    throw new StoreUnavailable('The store is unavailable')
  }
}
