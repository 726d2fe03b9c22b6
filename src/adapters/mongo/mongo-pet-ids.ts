import type { PetIds } from '../../core/ports/pet-ids.js'
import type { MongoConnection } from './mongo-connection.js'
import { MongoCounter } from './mongo-counter.js'

/** The remaining IDs of a reserved range, including both ends. */
interface Block {
  next: bigint
  readonly last: bigint
}

/**
 * Reserves blocks of IDs from the shared counter, and the next block when half of the current one is used. A block belongs to one process
 * and its remaining IDs are lost when the process ends. This causes gaps, but no ID is assigned twice.
 */
export class MongoPetIds implements PetIds {
  readonly #counter: MongoCounter
  readonly #blocks: Block[] = []
  #fetching: Promise<void> | undefined

  /** `blockSize`: IDs reserved at a time, 1 or more. */
  constructor(
    mongo: MongoConnection,
    private readonly blockSize: number,
  ) {
    this.#counter = new MongoCounter(mongo, 'pets')
  }

  async next(): Promise<bigint> {
    for (;;) {
      const id = this.#takeNext()
      if (id !== undefined) return id
      await this.#fetchBlock()
    }
  }

  #takeNext(): bigint | undefined {
    const [block] = this.#blocks
    if (!block) return undefined
    const id = block.next
    block.next += 1n
    if (block.next > block.last) this.#blocks.shift()
    this.#prefetch()
    return id
  }

  /**
   * Ignores errors: if no block is left, `next` fetches one and reports the error. Single IDs are not prefetched, so that all replicas
   * together assign them in ascending order.
   */
  #prefetch(): void {
    if (this.blockSize === 1) return
    const left = this.#blocks.reduce((sum, { next, last }) => sum + last - next + 1n, 0n)
    if (left * 2n < BigInt(this.blockSize)) this.#fetchBlock().catch(() => undefined)
  }

  #fetchBlock(): Promise<void> {
    this.#fetching ??= this.#reserveBlock().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  async #reserveBlock(): Promise<void> {
    const { first, last } = await this.#counter.reserveUpTo(this.blockSize)
    this.#blocks.push({ next: first, last })
  }
}
