import { createHash } from 'node:crypto'
import type { Collection, Db } from 'mongodb'
import type { Clock } from '../../core/ports/clock.js'
import type { IdempotencyRecord, IdempotencyScope, IdempotencyStore } from '../../core/ports/idempotency-store.js'
import { IDEMPOTENCY_MS } from '../../core/ports/idempotency-store.js'
import { callMongo, isDuplicateKey, SERVER_TIME_LIMIT } from './mongo-call.js'

interface IdempotencyDocument {
  /** SHA-256 of the scope. */
  _id: string
  fingerprint: string
  petId: bigint
  /** A TTL index removes the record some time after this; until then the claim itself looks past it. */
  expiresAt: Date
}

const ATTEMPTS = 3

export class MongoIdempotencyStore implements IdempotencyStore {
  readonly #records: Collection<IdempotencyDocument>

  constructor(
    db: Db,
    private readonly clock: Clock,
  ) {
    this.#records = db.collection<IdempotencyDocument>('idempotency', { useBigInt64: true })
  }

  async claim(scope: IdempotencyScope, offered: IdempotencyRecord): Promise<IdempotencyRecord> {
    const id = createHash('sha256')
      .update(JSON.stringify([scope.keyId, scope.idempotencyKey]))
      .digest('hex')
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const record = (await this.#insert(id, offered)) ?? (await this.#takeOver(id, offered))
      if (record) return record
    }
    throw new Error('An idempotency record was there and gone again, time after time')
  }

  /** Not one upsert for both: what that returns to concurrent claims of a new record is not the same with everything that speaks MongoDB's protocol. */
  async #insert(id: string, offered: IdempotencyRecord): Promise<IdempotencyRecord | undefined> {
    const { fingerprint, petId } = offered
    try {
      await callMongo(() => this.#records.insertOne({ _id: id, fingerprint, petId, expiresAt: this.#end() }, SERVER_TIME_LIMIT))
      return offered
    } catch (error) {
      if (isDuplicateKey(error)) return undefined
      throw error
    }
  }

  /** One update decides: each field keeps its value in a record that is live, and takes the offered one in any other. Absent when the TTL index was faster. */
  async #takeOver(id: string, { fingerprint, petId }: IdempotencyRecord): Promise<IdempotencyRecord | undefined> {
    const now = new Date(this.clock.nowMs())
    const keepLive = (field: string, offered: unknown) => ({ $cond: [{ $gt: ['$expiresAt', now] }, `$${field}`, { $literal: offered }] })
    const update = {
      $set: {
        fingerprint: keepLive('fingerprint', fingerprint),
        petId: keepLive('petId', petId),
        expiresAt: keepLive('expiresAt', this.#end()),
      },
    }
    const record = await callMongo(() =>
      this.#records.findOneAndUpdate({ _id: id }, [update], { returnDocument: 'after', ...SERVER_TIME_LIMIT }),
    )
    return record ? { fingerprint: record.fingerprint, petId: record.petId } : undefined
  }

  #end(): Date {
    return new Date(this.clock.nowMs() + IDEMPOTENCY_MS)
  }
}
