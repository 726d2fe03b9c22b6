import type { Collection, Db } from 'mongodb'
import { MAX_ASSIGNED_ID } from '../../core/int64.js'
import { callMongo, isDuplicateKey, SERVER_TIME_LIMIT } from './mongo-call.js'

interface CounterDocument {
  _id: string
  /** The last id given out to anybody. */
  last: bigint
}

/** Both ends included. */
export interface IdRange {
  readonly first: bigint
  readonly last: bigint
}

/** Ids for one collection, from a document that all replicas count up. */
export class MongoCounter {
  readonly #counters: Collection<CounterDocument>

  constructor(
    db: Db,
    private readonly name: 'pets' | 'orders',
  ) {
    this.#counters = db.collection<CounterDocument>('counters', { useBigInt64: true })
  }

  /**
   * Takes the next `count` ids for the caller alone, fewer where the range ends at 2^53 − 1.
   * Throws `StoreUnavailable` (the ids may then be taken, by nobody) and a plain error when none is left.
   */
  async take(count: number): Promise<IdRange> {
    const end = await this.#advance(BigInt(count))
    const first = end - BigInt(count) + 1n
    if (first > MAX_ASSIGNED_ID) throw new Error(`All ids of ${this.name} up to 2^53 − 1 have been given out`)
    return { first, last: end < MAX_ASSIGNED_ID ? end : MAX_ASSIGNED_ID }
  }

  /** All of `count`, or a plain error. */
  async takeAll(count: number): Promise<IdRange> {
    const range = await this.take(count)
    if (range.last - range.first + 1n < BigInt(count)) throw new Error(`Fewer than ${count} ids of ${this.name} were left`)
    return range
  }

  async #advance(count: bigint): Promise<bigint> {
    const advanced = await this.#increment(count)
    if (advanced !== undefined) return advanced
    await this.#begin()
    const last = await this.#increment(count)
    if (last === undefined) throw new Error(`The counter of ${this.name} was there and is gone`)
    return last
  }

  /** Not an upsert: what that returns to replicas that make the counter at once is not the same with everything that speaks MongoDB's protocol. */
  async #begin(): Promise<void> {
    try {
      await callMongo(() => this.#counters.insertOne({ _id: this.name, last: 0n }, SERVER_TIME_LIMIT))
    } catch (error) {
      // Another replica was first.
      if (!isDuplicateKey(error)) throw error
    }
  }

  /** Absent while nobody has made the counter. */
  async #increment(count: bigint): Promise<bigint | undefined> {
    const counter = await callMongo(() =>
      this.#counters.findOneAndUpdate({ _id: this.name }, { $inc: { last: count } }, { returnDocument: 'after', ...SERVER_TIME_LIMIT }),
    )
    return counter?.last
  }
}
