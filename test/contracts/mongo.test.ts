import type { Db } from 'mongodb'
import { MongoApiKeyHistory } from '../../src/adapters/mongo/mongo-api-key-history.js'
import { MongoApiKeyStore } from '../../src/adapters/mongo/mongo-api-key-store.js'
import { MongoIdempotencyStore } from '../../src/adapters/mongo/mongo-idempotency-store.js'
import { MongoOrderStore, getOrderCollection } from '../../src/adapters/mongo/mongo-order-store.js'
import { MongoPetIds } from '../../src/adapters/mongo/mongo-pet-ids.js'
import { MongoPetStore } from '../../src/adapters/mongo/mongo-pet-store.js'
import { BULK_TIMEOUT_MS, MongoSeedStore } from '../../src/adapters/mongo/mongo-seed-store.js'
import { SystemClock } from '../../src/adapters/node/system-clock.js'
import type { Order } from '../../src/core/order.js'
import type { Clock } from '../../src/core/ports/clock.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase, anOwnMongo } from '../support/engines/mongo-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { MongoData } from '../support/mongo-data.js'
import type { HistoryAdapters } from './api-key-history.contract.js'
import { describeApiKeyHistory, describeApiKeyHistoryOutages } from './api-key-history.contract.js'
import { describeApiKeyStore, describeApiKeyStoreOutages } from './api-key-store.contract.js'
import { describeIdempotencyStore, describeIdempotencyStoreOutages } from './idempotency-store.contract.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { describeOrderStore, describeOrderStoreOutages } from './order-store.contract.js'
import { describePetIds, describePetIdsOutages } from './pet-ids.contract.js'
import { describePetStore, describePetStoreOutages } from './pet-store.contract.js'
import type { SeedAdapters } from './seed-store.contract.js'
import { describeSeedStore, describeSeedStoreOutages } from './seed-store.contract.js'

/** Small, so that most tests use several blocks. */
const BLOCK_SIZE = 10

/** Opens each adapter on data that a `before` hook has prepared. */
function makeOpeners(data: () => MongoData) {
  return {
    pets: () => data().open((mongo) => new MongoPetStore(mongo)),
    orders: (orders: readonly Order[]) => data().open((mongo) => new MongoOrderStore(mongo), store(orders)),
    petIds: (last: bigint) => data().open((mongo) => new MongoPetIds(mongo, BLOCK_SIZE), countTo(last)),
    idempotency: (clock: Clock) => data().open((mongo) => new MongoIdempotencyStore(mongo, clock)),
    apiKeys: (clock: Clock) => data().open((mongo) => new MongoApiKeyStore(mongo, clock)),
    apiKeyHistory: (): Promise<OpenAdapter<HistoryAdapters>> =>
      data().open((mongo) => ({ apiKeys: new MongoApiKeyStore(mongo, new SystemClock()), history: new MongoApiKeyHistory(mongo) })),
    seeded: (): Promise<OpenAdapter<SeedAdapters>> =>
      data().open((mongo) => ({
        seedStore: new MongoSeedStore(data().connect({ callTimeoutMs: BULK_TIMEOUT_MS })),
        pets: new MongoPetStore(mongo),
        petIds: new MongoPetIds(mongo, BLOCK_SIZE),
        orders: new MongoOrderStore(mongo),
      })),
  }
}

describe('MongoDB', () => {
  let database: MongoDatabase
  let data: MongoData
  const open = makeOpeners(() => data)

  before(async function () {
    database = await aMongoDatabase(this)
    data = await MongoData.withIndexes(database.url)
  })

  after(() => database?.drop())

  describePetStore('in MongoDB', open.pets)
  describeOrderStore('in MongoDB', open.orders)
  describePetIds('from MongoDB', open.petIds)
  describeIdempotencyStore('in MongoDB', open.idempotency)
  describeApiKeyStore('in MongoDB', open.apiKeys)
  describeApiKeyHistory('in MongoDB', open.apiKeyHistory)
  describeSeedStore('in MongoDB', open.seeded)
})

describe('MongoDB with outages', () => {
  let server: OwnEngine
  let data: MongoData
  const open = makeOpeners(() => data)

  before(async function () {
    server = await anOwnMongo(this)
    data = await MongoData.withIndexes(server.url)
  })

  after(() => server?.stop())

  async function end(): Promise<void> {
    await server.start()
    await data.untilItIsBack()
  }
  const killed: Outage = { begin: () => server.kill(), end }
  const frozen: Outage = { begin: () => server.freeze(), end }

  describePetStoreOutages('in MongoDB that is killed', open.pets, killed)
  describePetStoreOutages('in MongoDB that is frozen', open.pets, frozen)
  describeOrderStoreOutages('in MongoDB that is frozen', open.orders, frozen)
  describePetIdsOutages('from MongoDB that is frozen', open.petIds, frozen)
  describeIdempotencyStoreOutages('in MongoDB that is killed', open.idempotency, killed)
  describeIdempotencyStoreOutages('in MongoDB that is frozen', open.idempotency, frozen)
  describeApiKeyStoreOutages('in MongoDB that is killed', open.apiKeys, killed)
  describeApiKeyStoreOutages('in MongoDB that is frozen', open.apiKeys, frozen)
  describeApiKeyHistoryOutages('in MongoDB that is killed', open.apiKeyHistory, killed)
  // No outage tests with a frozen MongoDB, because a bulk connection waits for a minute.
  describeSeedStoreOutages('in MongoDB that is killed', open.seeded, killed)
})

function store(orders: readonly Order[]): (db: Db) => Promise<unknown> {
  const documents = orders.map(({ id, ...order }) => ({ _id: id, ...order }))
  return async (db) => documents.length > 0 && getOrderCollection(db).insertMany(documents)
}

function countTo(last: bigint): (db: Db) => Promise<unknown> {
  return async (db) => last > 0n && db.collection<{ _id: string; last: bigint }>('counters').insertOne({ _id: 'pets', last })
}
