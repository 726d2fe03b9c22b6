import type { NewOrder } from '../order.js'
import { ORDER_STATUSES } from '../order.js'
import type { NewPet } from '../pet.js'
import { PET_STATUSES } from '../pet.js'
import { NoPetsToOrder } from '../errors.js'
import type { PetStore } from '../ports/pet-store.js'
import type { SeedStore } from '../ports/seed-store.js'

/** The total number of rows that the store should contain. */
export interface SeedTarget {
  readonly pets: number
  readonly orders: number
}

export interface SeedResult {
  readonly petsAdded: number
  readonly ordersAdded: number
}

/** Called at the start and after each batch. `done` and `total` count the rows that this run adds. */
export type OnSeedProgress = (done: number, total: number) => void

/**
 * Adds the rows that are missing to reach the target. A second run adds nothing, and a run after a failure adds the rest. Concurrent runs
 * exceed the target, because each adds all missing rows. Throws `NoPetsToOrder`.
 */
export type Seed = (target: SeedTarget, onProgress: OnSeedProgress) => Promise<SeedResult>

const BATCH_SIZE = 1_000

/** The sample orders refer to the first pets, up to this number. */
const MAX_ORDERED_PETS = 1_000

export function makeSeed({ seedStore, pets: petStore }: { seedStore: SeedStore; pets: PetStore }): Seed {
  return async (target, onProgress) => {
    const pets = { existing: await seedStore.countPets(), target: target.pets }
    const orders = { existing: await seedStore.countOrders(), target: target.orders }
    const total = countMissing(pets) + countMissing(orders)
    let done = 0
    const advance = (count: number) => onProgress((done += count), total)

    advance(0)
    for (const batch of toBatches(pets)) {
      await seedStore.addPets(batch.map(makeSamplePet))
      advance(batch.length)
    }
    const petIds = countMissing(orders) > 0 ? (await petStore.list({ limit: MAX_ORDERED_PETS })).map(({ id }) => id) : []
    if (countMissing(orders) > 0 && petIds.length === 0) throw new NoPetsToOrder('There are no pets to order: add pets first')
    for (const batch of toBatches(orders)) {
      await seedStore.addOrders(batch.map((index) => makeSampleOrder(index, petIds)))
      advance(batch.length)
    }
    return { petsAdded: countMissing(pets), ordersAdded: countMissing(orders) }
  }
}

interface RowCounts {
  readonly existing: number
  readonly target: number
}

function countMissing({ existing, target }: RowCounts): number {
  return Math.max(0, target - existing)
}

/** Yields the indexes of the rows to add, from `existing` to `target` − 1, in batches. */
function* toBatches({ existing, target }: RowCounts): Generator<number[]> {
  for (let from = existing; from < target; from += BATCH_SIZE) {
    yield Array.from({ length: Math.min(BATCH_SIZE, target - from) }, (_, offset) => from + offset)
  }
}

const NAMES = ['Rex', 'Mimi', 'Polly', 'Bruno', 'Luna', 'Hazel', 'Kiwi', 'Balu', 'Pixel', 'Nala']

function makeSamplePet(index: number): NewPet {
  return {
    name: `${pick(NAMES, index)} ${index + 1}`,
    categoryId: BigInt((index % 4) + 1),
    status: pick(PET_STATUSES, Math.floor(index / NAMES.length)),
  }
}

function makeSampleOrder(index: number, petIds: readonly bigint[]): NewOrder {
  const status = pick(ORDER_STATUSES, index)
  return { petId: pick(petIds, index), quantity: (index % 3) + 1, status, complete: status === 'delivered' }
}

function pick<Item>(items: readonly Item[], index: number): Item {
  return items[index % items.length] as Item
}
