import { createHash } from 'node:crypto'
import type { Collection } from 'mongodb'
import type { Clock } from '../../core/ports/clock.js'
import type { IdempotencyRecord, IdempotencyScope, IdempotencyStore } from '../../core/ports/idempotency-store.js'
import { IDEMPOTENCY_TTL_MS } from '../../core/ports/idempotency-store.js'
import { isDuplicateKeyError, SERVER_TIME_LIMIT } from './mongo-call.js'
import type { MongoConnection } from './mongo-connection.js'

interface IdempotencyDocument {
  /** SHA-256 of the scope. */
  _id: string
  fingerprint: string
  petId: bigint
  /** A TTL index removes the record some time after this. Until then, `claim` ignores and replaces it. */
  expiresAt: Date
}

const MAX_ATTEMPTS = 3

export class MongoIdempotencyStore implements IdempotencyStore {
  readonly #records: Collection<IdempotencyDocument>

  constructor(
    private readonly mongo: MongoConnection,
    private readonly clock: Clock,
  ) {
    this.#records = mongo.db.collection<IdempotencyDocument>('idempotency', { useBigInt64: true })
  }

  async claim(scope: IdempotencyScope, offered: IdempotencyRecord): Promise<IdempotencyRecord> {
    const id = createHash('sha256')
      .update(JSON.stringify([scope.keyId, scope.idempotencyKey]))
      .digest('hex')
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const record = (await this.#insert(id, offered)) ?? (await this.#keepOrReplace(id, offered))
      if (record) return record
    }
    throw new Error(`An idempotency record appeared and disappeared in each of ${MAX_ATTEMPTS} attempts`)
  }

  /** Returns `undefined` if a record exists. Not an upsert, because compatible servers return different results for concurrent upserts. */
  async #insert(id: string, offered: IdempotencyRecord): Promise<IdempotencyRecord | undefined> {
    const { fingerprint, petId } = offered
    try {
      await this.mongo.call('idempotency.insert', () =>
        this.#records.insertOne({ _id: id, fingerprint, petId, expiresAt: this.#getExpiry() }, SERVER_TIME_LIMIT),
      )
      return offered
    } catch (error) {
      if (isDuplicateKeyError(error)) return undefined
      throw error
    }
  }

  /** Keeps a valid record and overwrites an expired one, in one atomic update. Returns `undefined` if the TTL index has removed the record. */
  async #keepOrReplace(id: string, { fingerprint, petId }: IdempotencyRecord): Promise<IdempotencyRecord | undefined> {
    const now = new Date(this.clock.nowMs())
    const keepIfValid = (field: string, offered: unknown) => ({ $cond: [{ $gt: ['$expiresAt', now] }, `$${field}`, { $literal: offered }] })
    const update = {
      $set: {
        fingerprint: keepIfValid('fingerprint', fingerprint),
        petId: keepIfValid('petId', petId),
        expiresAt: keepIfValid('expiresAt', this.#getExpiry()),
      },
    }
    const record = await this.mongo.call('idempotency.update', () =>
      this.#records.findOneAndUpdate({ _id: id }, [update], { returnDocument: 'after', ...SERVER_TIME_LIMIT }),
    )
    return record ? { fingerprint: record.fingerprint, petId: record.petId } : undefined
  }

  #getExpiry(): Date {
    return new Date(this.clock.nowMs() + IDEMPOTENCY_TTL_MS)
  }
}
