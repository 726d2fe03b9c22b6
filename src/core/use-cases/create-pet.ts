import type { Cancellation } from '../cancellation.js'
import { IdempotencyKeyReused, StoreUnavailable } from '../errors.js'
import type { NewPet, Pet } from '../pet.js'
import type { IdempotencyScope, IdempotencyStore } from '../ports/idempotency-store.js'
import type { PetIds } from '../ports/pet-ids.js'
import type { PetStore } from '../ports/pet-store.js'

export interface PetCreation {
  readonly pet: Pet
  /** Whether an earlier request with the same idempotency key created the pet. */
  readonly isReplay: boolean
}

/** With a scope, retries create the pet only once. Throws `IdempotencyKeyReused` if the scope was used for a different pet. Starts no write after the signal is aborted. */
export type CreatePet = (newPet: NewPet, scope?: IdempotencyScope, signal?: Cancellation) => Promise<PetCreation>

export function makeCreatePet(ports: { pets: PetStore; petIds: PetIds; idempotency: IdempotencyStore }): CreatePet {
  return async (newPet, scope, signal) => {
    const newId = await ports.petIds.next()
    signal?.throwIfAborted()
    const id = scope ? await claimId(ports.idempotency, scope, newPet, newId) : newId
    signal?.throwIfAborted()
    const pet = { id, name: newPet.name, categoryId: newPet.categoryId, status: newPet.status }
    if ((await ports.pets.insert(pet)) === 'inserted') return { pet, isReplay: false }
    if (!scope) throw new Error(`The new pet ID ${id} is taken: an ID was assigned twice`)
    return { pet: await findStored(ports.pets, pet), isReplay: true }
  }
}

/**
 * Finds the pet that an earlier request stored under the claimed ID. Throws if the ID belongs to a different pet, because this pet would
 * otherwise be lost.
 */
async function findStored(pets: PetStore, claimed: Pet): Promise<Pet> {
  const stored = await pets.find(claimed.id)
  if (!stored) throw new StoreUnavailable(`Pet ID ${claimed.id} is taken, but the pet is not readable yet`)
  if (toFingerprint(stored) !== toFingerprint(claimed)) throw new Error(`The claimed pet ID ${claimed.id} belongs to a different pet`)
  return stored
}

/**
 * Claims the ID before the pet is stored. If the process crashes in between, the retry stores the pet under the claimed ID. If identical
 * requests run concurrently, one stores the pet and the others find it. This needs neither locks nor transactions.
 */
async function claimId(idempotency: IdempotencyStore, scope: IdempotencyScope, newPet: NewPet, newId: bigint): Promise<bigint> {
  const fingerprint = toFingerprint(newPet)
  const record = await idempotency.claim(scope, { fingerprint, petId: newId })
  if (record.fingerprint !== fingerprint) throw new IdempotencyKeyReused()
  return record.petId
}

/** Two pets have the same fingerprint if and only if the clients sent the same fields. */
function toFingerprint({ name, categoryId, status }: NewPet): string {
  return JSON.stringify([name, categoryId.toString(), status])
}
