import type { Collection, Db } from 'mongodb'
import { MAX_ASSIGNED_ID } from '../../core/int64.js'
import { callMongo, isDuplicateKeyError, SERVER_TIME_LIMIT } from './mongo-call.js'

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

/** Assigns the IDs of one collection from a counter document that all replicas share. */
export class MongoCounter {
  readonly #counters: Collection<CounterDocument>

  constructor(
    db: Db,
    private readonly name: 'pets' | 'orders',
  ) {
    this.#counters = db.collection<CounterDocument>('counters', { useBigInt64: true })
  }

  /**
   * Reserves the next `count` IDs, or fewer at the end of the range, 2^53 − 1. Throws `StoreUnavailable` (the IDs may then be lost), and a
   * plain `Error` if no ID is left.
   */
  async reserveUpTo(count: number): Promise<IdRange> {
    const end = await this.#increment(BigInt(count))
    const first = end - BigInt(count) + 1n
    if (first > MAX_ASSIGNED_ID) throw new Error(`All ${this.name} IDs up to 2^53 − 1 have been assigned`)
    return { first, last: end < MAX_ASSIGNED_ID ? end : MAX_ASSIGNED_ID }
  }

  /** Like `reserveUpTo`, but also throws a plain `Error` if fewer than `count` IDs are left. */
  async reserveExactly(count: number): Promise<IdRange> {
    const range = await this.reserveUpTo(count)
    if (range.last - range.first + 1n < BigInt(count)) throw new Error(`Fewer than ${count} ${this.name} IDs are left`)
    return range
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
      await callMongo(() => this.#counters.insertOne({ _id: this.name, last: 0n }, SERVER_TIME_LIMIT))
    } catch (error) {
      // Another replica has created it.
      if (!isDuplicateKeyError(error)) throw error
    }
  }

  /** Returns `undefined` if the counter does not exist. */
  async #tryIncrement(count: bigint): Promise<bigint | undefined> {
    const counter = await callMongo(() =>
      this.#counters.findOneAndUpdate({ _id: this.name }, { $inc: { last: count } }, { returnDocument: 'after', ...SERVER_TIME_LIMIT }),
    )
    return counter?.last
  }
}
