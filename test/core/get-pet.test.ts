import { expect } from 'chai'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { OperationRemoved, PetNotFound, StoreUnavailable } from '../../src/core/errors.js'
import type { Pet } from '../../src/core/pet.js'
import { makeGetPet } from '../../src/core/use-cases/get-pet.js'
import { aPet } from '../support/builders.js'
import { rejection } from '../contracts/rejection.js'
import { MovableClock } from '../support/movable-clock.js'

const REMOVED_AT_MS = Date.parse('2030-12-05T00:00:00Z')

describe('getting a pet', () => {
  const clock = new MovableClock()
  const getPet = makeGetPet({ pets: new MemoryPetStore([aPet({ id: 5n, name: 'Luna' })]), clock })

  beforeEach(() => clock.moveTo(Date.parse('2026-11-20T12:00:00Z')))

  it('gives the pet of the id', async () => {
    expect(await getPet(5n)).to.deep.equal(aPet({ id: 5n, name: 'Luna' }))
  })

  it('of an id that no pet has is answered by PetNotFound', async () => {
    for (const id of [6n, 0n, -5n]) {
      expect(await rejection(getPet(id)))
        .to.be.instanceOf(PetNotFound)
        .with.property('code', 'pet_not_found')
    }
  })

  it('works until the last millisecond before 5 December 2030, 00:00 UTC', async () => {
    clock.moveTo(REMOVED_AT_MS - 1)
    expect(await getPet(5n)).to.deep.equal(aPet({ id: 5n, name: 'Luna' }))
  })

  it('is answered by OperationRemoved from that instant on, whether the pet is there or not', async () => {
    for (const nowMs of [REMOVED_AT_MS, REMOVED_AT_MS + 1, Date.parse('2040-01-01')]) {
      clock.moveTo(nowMs)
      for (const id of [5n, 6n]) {
        expect(await rejection(getPet(id)))
          .to.be.instanceOf(OperationRemoved)
          .with.property('code', 'operation_removed')
      }
    }
  })

  it('does not make a missing pet of an outage', async () => {
    const getFromAway = makeGetPet({ pets: new PetStoreAway(), clock })
    expect(await rejection(getFromAway(5n))).to.be.instanceOf(StoreUnavailable)
  })
})

class PetStoreAway extends MemoryPetStore {
  override async find(): Promise<Pet | undefined> {
    throw new StoreUnavailable('The store is away')
  }
}
