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
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#claimOnce(id, offered)
      } catch (error) {
        // Twins may both try to make the record: who comes second finds it at the next attempt.
        if (!isDuplicateKey(error) || attempt === ATTEMPTS) throw error
      }
    }
  }

  /** One update decides: each field keeps its value in a record that is live, and takes the offered one in any other. */
  async #claimOnce(id: string, { fingerprint, petId }: IdempotencyRecord): Promise<IdempotencyRecord> {
    const now = new Date(this.clock.nowMs())
    const keepLive = (field: string, offered: unknown) => ({ $cond: [{ $gt: ['$expiresAt', now] }, `$${field}`, { $literal: offered }] })
    const update = {
      $set: {
        fingerprint: keepLive('fingerprint', fingerprint),
        petId: keepLive('petId', petId),
        expiresAt: keepLive('expiresAt', new Date(now.getTime() + IDEMPOTENCY_MS)),
      },
    }
    const record = await callMongo(() =>
      this.#records.findOneAndUpdate({ _id: id }, [update], { upsert: true, returnDocument: 'after', ...SERVER_TIME_LIMIT }),
    )
    if (!record) throw new Error('MongoDB returned no record for an upsert')
    return { fingerprint: record.fingerprint, petId: record.petId }
  }
}
