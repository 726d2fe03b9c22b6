import type { Collection } from 'mongodb'
import { MAX_ASSIGNED_ID } from '../../core/int64.js'
import { isDuplicateKeyError, SERVER_TIME_LIMIT } from './mongo-call.js'
import type { MongoConnection } from './mongo-connection.js'

interface CounterDocument {
  _id: string
  /** The last ID that was assigned. */
  last: bigint
}

/** Both ends are inclusive. */
export interface IdRange {
  readonly first: bigint
  readonly last: bigint
}

/** The number of blocks to skip after the counter was restored: more than all replicas together have reserved. */
const SKIPPED_BLOCKS = 1_000n
const MIN_BLOCK_SIZE = 1_000

/**
 * A document with a higher ID says nothing about the counter, which never gets this far: the ID was imported. If the counter advanced past an
 * ID near the maximum, no IDs would be left.
 */
const MAX_COUNTED_ID = MAX_ASSIGNED_ID / 2n

/**
 * Assigns the IDs of one collection from a counter document that all replicas share. If the counter was restored from a backup and is behind
 * the documents of the collection, it advances past them.
 */
export class MongoCounter {
  readonly #counters: Collection<CounterDocument>
  readonly #documents: Collection<{ _id: bigint }>
  /** The last ID that this instance has reserved. */
  #lastReserved = 0n

  constructor(
    private readonly mongo: MongoConnection,
    private readonly name: 'pets' | 'orders',
  ) {
    this.#counters = mongo.db.collection<CounterDocument>('counters', { useBigInt64: true })
    this.#documents = mongo.db.collection<{ _id: bigint }>(name, { useBigInt64: true })
  }

  /**
   * Reserves the next `count` IDs, or fewer at the end of the range, 2^53 − 1. Throws `StoreUnavailable` (the IDs may then be lost), and a
   * plain `Error` if no ID is left.
   */
  async reserveUpTo(count: number): Promise<IdRange> {
    // Read first: documents that are inserted afterwards may have IDs of later blocks.
    const lastAssigned = await this.#findLastAssigned()
    let range = await this.#reserve(count)
    if (range.first <= lastAssigned) {
      await this.#advance(lastAssigned + SKIPPED_BLOCKS * BigInt(Math.max(count, MIN_BLOCK_SIZE)))
      range = await this.#reserve(count)
    }
    this.#lastReserved = range.last
    return range
  }

  /** Like `reserveUpTo`, but also throws a plain `Error` if fewer than `count` IDs are left. */
  async reserveExactly(count: number): Promise<IdRange> {
    const range = await this.reserveUpTo(count)
    if (range.last - range.first + 1n < BigInt(count)) throw new Error(`Fewer than ${count} ${this.name} IDs are left`)
    return range
  }

  async #reserve(count: number): Promise<IdRange> {
    const end = await this.#increment(BigInt(count))
    const first = end - BigInt(count) + 1n
    if (first > MAX_ASSIGNED_ID) throw new Error(`All ${this.name} IDs up to 2^53 − 1 have been assigned`)
    return { first, last: end < MAX_ASSIGNED_ID ? end : MAX_ASSIGNED_ID }
  }

  /** Returns the highest ID that is known to be assigned, or 0. */
  async #findLastAssigned(): Promise<bigint> {
    const highest = await this.mongo.call(`${this.name}.find`, () =>
      this.#documents.findOne({ _id: { $lte: MAX_COUNTED_ID } }, { sort: { _id: -1 }, projection: { _id: 1 }, ...SERVER_TIME_LIMIT }),
    )
    return highest && highest._id > this.#lastReserved ? highest._id : this.#lastReserved
  }

  /** Replicas may do this concurrently. */
  async #advance(last: bigint): Promise<void> {
    await this.mongo.call('counters.update', () => this.#counters.updateOne({ _id: this.name }, { $max: { last } }, SERVER_TIME_LIMIT))
  }

  async #increment(count: bigint): Promise<bigint> {
    const incremented = await this.#tryIncrement(count)
    if (incremented !== undefined) return incremented
    await this.#create()
    const last = await this.#tryIncrement(count)
    if (last === undefined) throw new Error(`The counter of ${this.name} was deleted`)
    return last
  }

  /** Not an upsert, because compatible servers return different results for concurrent upserts. */
  async #create(): Promise<void> {
    try {
      await this.mongo.call('counters.insert', () => this.#counters.insertOne({ _id: this.name, last: 0n }, SERVER_TIME_LIMIT))
    } catch (error) {
      // Another replica has created it.
      if (!isDuplicateKeyError(error)) throw error
    }
  }

  /** Returns `undefined` if the counter does not exist. */
  async #tryIncrement(count: bigint): Promise<bigint | undefined> {
    const counter = await this.mongo.call('counters.update', () =>
      this.#counters.findOneAndUpdate({ _id: this.name }, { $inc: { last: count } }, { returnDocument: 'after', ...SERVER_TIME_LIMIT }),
    )
    return counter?.last
  }
}
