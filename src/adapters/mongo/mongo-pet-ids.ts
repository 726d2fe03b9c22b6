import type { Db } from 'mongodb'
import type { PetIds } from '../../core/ports/pet-ids.js'
import { MongoCounter } from './mongo-counter.js'

/** What is left of a range of ids, both ends included. */
interface Block {
  next: bigint
  readonly last: bigint
}

/**
 * Takes ids from the shared counter a block at a time, the next block when half of this one is gone. A block belongs to one
 * process and ends with it: hence gaps, and never an id twice.
 */
export class MongoPetIds implements PetIds {
  readonly #counter: MongoCounter
  readonly #blocks: Block[] = []
  #fetching: Promise<void> | undefined

  /** `blockSize`: ids taken at a time, 1 or more. */
  constructor(
    db: Db,
    private readonly blockSize: number,
  ) {
    this.#counter = new MongoCounter(db, 'pets')
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
   * For those who come later: should it fail, the one who finds no block asks again, and is told why. Never of single ids: one
   * that is kept would be given out after later ones.
   */
  #prefetch(): void {
    if (this.blockSize === 1) return
    const left = this.#blocks.reduce((sum, { next, last }) => sum + last - next + 1n, 0n)
    if (left * 2n < BigInt(this.blockSize)) this.#fetchBlock().catch(() => undefined)
  }

  #fetchBlock(): Promise<void> {
    this.#fetching ??= this.#takeBlock().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  async #takeBlock(): Promise<void> {
    const { first, last } = await this.#counter.take(this.blockSize)
    this.#blocks.push({ next: first, last })
  }
}
