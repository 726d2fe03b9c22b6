import type { Collection, Db } from 'mongodb'
import type { PageRequest } from '../../core/page.js'
import type { Pet, PetStatus } from '../../core/pet.js'
import type { PetStore } from '../../core/ports/pet-store.js'
import { findRows } from './find-rows.js'
import type { Insert } from './batch-inserts.js'
import { batchInserts } from './batch-inserts.js'
import { listByKeyset } from './list-by-keyset.js'
import { isDuplicateKeyError } from './mongo-call.js'
import type { MongoConnection } from './mongo-connection.js'

export interface PetDocument {
  _id: bigint
  name: string
  categoryId: bigint
  status: PetStatus
}

export class MongoPetStore implements PetStore {
  readonly #pets: Collection<PetDocument>
  readonly #insert: Insert<PetDocument>

  constructor(private readonly mongo: MongoConnection) {
    this.#pets = getPetCollection(mongo.db)
    this.#insert = batchInserts(this.#pets)
  }

  async insert({ id, name, categoryId, status }: Pet): Promise<'inserted' | 'taken'> {
    try {
      await this.mongo.call('pets.insert', () => this.#insert({ _id: id, name, categoryId, status }))
      return 'inserted'
    } catch (error) {
      if (isDuplicateKeyError(error)) return 'taken'
      throw error
    }
  }

  async find(id: bigint): Promise<Pet | undefined> {
    const [found] = await findRows(this.mongo, this.#pets, { filter: { _id: id }, limit: 1 })
    return found ? toPet(found) : undefined
  }

  async list(request: PageRequest<PetStatus>): Promise<readonly Pet[]> {
    return (await listByKeyset(this.mongo, this.#pets, request)).map(toPet)
  }
}

/** Reads 64-bit integers as bigint, so that IDs and categories are exact. */
export function getPetCollection(db: Db): Collection<PetDocument> {
  return db.collection<PetDocument>('pets', { useBigInt64: true })
}

function toPet({ _id, name, categoryId, status }: PetDocument): Pet {
  return { id: _id, name, categoryId, status }
}
