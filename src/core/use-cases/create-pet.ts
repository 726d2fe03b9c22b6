import { IdempotencyKeyReused } from '../errors.js'
import type { NewPet, Pet } from '../pet.js'
import type { IdempotencyScope, IdempotencyStore } from '../ports/idempotency-store.js'
import type { PetIds } from '../ports/pet-ids.js'
import type { PetStore } from '../ports/pet-store.js'

export interface PetCreation {
  readonly pet: Pet
  /** The pet was there already, created by an earlier request of the same idempotency key. */
  readonly replayed: boolean
}

/** With a scope, a retry of the same pet creates it once. Throws `IdempotencyKeyReused` when the scope was used for another pet. */
export type CreatePet = (newPet: NewPet, scope?: IdempotencyScope) => Promise<PetCreation>

export function makeCreatePet(ports: { pets: PetStore; petIds: PetIds; idempotency: IdempotencyStore }): CreatePet {
  return async (newPet, scope) => {
    const freshId = await ports.petIds.next()
    const id = scope ? await claimedId(ports.idempotency, scope, newPet, freshId) : freshId
    const pet = { id, name: newPet.name, categoryId: newPet.categoryId, status: newPet.status }
    const outcome = await ports.pets.insert(pet)
    if (outcome === 'taken' && !scope) throw new Error(`The fresh pet id ${id} was taken: ids have been given out twice`)
    return { pet, replayed: outcome === 'taken' }
  }
}

/**
 * The id is promised before the pet is stored. So a crash between the two heals with the retry, which stores the pet under
 * the promised id, and of concurrent twins one stores it and the others find it taken. No lock, no transaction.
 */
async function claimedId(idempotency: IdempotencyStore, scope: IdempotencyScope, newPet: NewPet, freshId: bigint): Promise<bigint> {
  const fingerprint = JSON.stringify([newPet.name, newPet.categoryId.toString(), newPet.status])
  const record = await idempotency.claim(scope, { fingerprint, petId: freshId })
  if (record.fingerprint !== fingerprint) throw new IdempotencyKeyReused()
  return record.petId
}
