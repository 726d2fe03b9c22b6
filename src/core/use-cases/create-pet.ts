import { IdempotencyKeyReused, StoreUnavailable } from '../errors.js'
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
    if ((await ports.pets.insert(pet)) === 'inserted') return { pet, replayed: false }
    if (!scope) throw new Error(`The fresh pet id ${id} was taken: ids have been given out twice`)
    return { pet: await storedEarlier(ports.pets, pet), replayed: true }
  }
}

/** The pet that an earlier request stored under its promised id. Only that very pet is an answer: it was acknowledged to nobody else. */
async function storedEarlier(pets: PetStore, promised: Pet): Promise<Pet> {
  const stored = await pets.find(promised.id)
  if (!stored) throw new StoreUnavailable(`Pet ${promised.id} is taken, but cannot be read yet`)
  if (toFingerprint(stored) !== toFingerprint(promised)) throw new Error(`The promised pet id ${promised.id} is another pet's`)
  return stored
}

/**
 * The id is promised before the pet is stored. So a crash between the two heals with the retry, which stores the pet under
 * the promised id, and of concurrent twins one stores it and the others find it taken. No lock, no transaction.
 */
async function claimedId(idempotency: IdempotencyStore, scope: IdempotencyScope, newPet: NewPet, freshId: bigint): Promise<bigint> {
  const fingerprint = toFingerprint(newPet)
  const record = await idempotency.claim(scope, { fingerprint, petId: freshId })
  if (record.fingerprint !== fingerprint) throw new IdempotencyKeyReused()
  return record.petId
}

/** Equal exactly for pets of which the callers said the same. */
function toFingerprint({ name, categoryId, status }: NewPet): string {
  return JSON.stringify([name, categoryId.toString(), status])
}
