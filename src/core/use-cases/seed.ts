import type { NewOrder } from '../order.js'
import { ORDER_STATUSES } from '../order.js'
import type { NewPet } from '../pet.js'
import { PET_STATUSES } from '../pet.js'
import { NoPetsToOrder } from '../errors.js'
import type { PetStore } from '../ports/pet-store.js'
import type { SeedStore } from '../ports/seed-store.js'

/** How many the store shall have in all. */
export interface SeedTarget {
  readonly pets: number
  readonly orders: number
}

export interface SeedResult {
  readonly petsAdded: number
  readonly ordersAdded: number
}

/** Called at the start and after each batch; both count rows to add in this run. */
export type OnSeedProgress = (done: number, total: number) => void

/**
 * Adds what is missing to the target, so that a second run adds nothing and a run after a failure adds the rest; of two at once each
 * adds for itself. Throws `NoPetsToOrder`.
 */
export type Seed = (target: SeedTarget, onProgress: OnSeedProgress) => Promise<SeedResult>

const BATCH = 1_000

/** Orders are for some of the first so many pets. */
const ORDERED_PETS = 1_000

export function makeSeed({ seedStore, pets: petStore }: { seedStore: SeedStore; pets: PetStore }): Seed {
  return async (target, onProgress) => {
    const pets = { there: await seedStore.countPets(), target: target.pets }
    const orders = { there: await seedStore.countOrders(), target: target.orders }
    const total = missing(pets) + missing(orders)
    let done = 0
    const advance = (count: number) => onProgress((done += count), total)

    advance(0)
    for (const batch of batches(pets)) {
      await seedStore.addPets(batch.map(samplePet))
      advance(batch.length)
    }
    const petIds = missing(orders) > 0 ? (await petStore.list({ limit: ORDERED_PETS })).map(({ id }) => id) : []
    if (missing(orders) > 0 && petIds.length === 0) throw new NoPetsToOrder('Orders are for pets, and there are none')
    for (const batch of batches(orders)) {
      await seedStore.addOrders(batch.map((place) => sampleOrder(place, petIds)))
      advance(batch.length)
    }
    return { petsAdded: missing(pets), ordersAdded: missing(orders) }
  }
}

interface Count {
  readonly there: number
  readonly target: number
}

function missing({ there, target }: Count): number {
  return Math.max(0, target - there)
}

/** The places of the rows to add, `there` to `target` − 1, in pieces. */
function* batches({ there, target }: Count): Generator<number[]> {
  for (let from = there; from < target; from += BATCH) {
    yield Array.from({ length: Math.min(BATCH, target - from) }, (_, index) => from + index)
  }
}

const NAMES = ['Rex', 'Mimi', 'Polly', 'Bruno', 'Luna', 'Hazel', 'Kiwi', 'Balu', 'Pixel', 'Nala']

function samplePet(place: number): NewPet {
  return {
    name: `${pick(NAMES, place)} ${place + 1}`,
    categoryId: BigInt((place % 4) + 1),
    status: pick(PET_STATUSES, Math.floor(place / NAMES.length)),
  }
}

function sampleOrder(place: number, petIds: readonly bigint[]): NewOrder {
  const status = pick(ORDER_STATUSES, place)
  return { petId: pick(petIds, place), quantity: (place % 3) + 1, status, complete: status === 'delivered' }
}

function pick<Item>(items: readonly Item[], place: number): Item {
  return items[place % items.length] as Item
}
