import { expect } from 'chai'
import { MongoConnection } from '../../../src/adapters/mongo/mongo-connection.js'
import { MongoSeedStore } from '../../../src/adapters/mongo/mongo-seed-store.js'
import { MAX_ASSIGNED_ID } from '../../../src/core/int64.js'
import { aPet, anOrder } from '../../support/builders.js'
import { rejection } from '../../contracts/rejection.js'
import type { FakeMongo } from '../../support/fake-mongo.js'
import { startFakeMongo } from '../../support/fake-mongo.js'

describe('the seed store in MongoDB, with two IDs left up to 2^53 − 1,', () => {
  let mongo: FakeMongo
  let connection: MongoConnection
  let store: MongoSeedStore

  beforeEach(async () => {
    mongo = await startFakeMongo()
    connection = new MongoConnection(mongo.url)
    const last = MAX_ASSIGNED_ID - 2n
    const counters = connection.db.collection<{ _id: string; last: bigint }>('counters')
    await counters.insertMany([
      { _id: 'pets', last },
      { _id: 'orders', last },
    ])
    store = new MongoSeedStore(connection)
  })
  afterEach(async () => {
    await connection.close()
    await mongo.close()
  })

  const added = (collection: string) =>
    mongo.received('insert').flatMap(({ insert, documents }) => (insert === collection ? (documents as { _id: unknown }[]) : []))

  const adds: Readonly<Record<string, (count: number) => Promise<void>>> = {
    pets: (count) => store.addPets(Array.from({ length: count }, () => aPet())),
    orders: (count) => store.addOrders(Array.from({ length: count }, () => anOrder())),
  }
  for (const [collection, add] of Object.entries(adds)) {
    it(`adds two ${collection}`, async () => {
      await add(2)
      expect(added(collection).map(({ _id }) => BigInt(_id as number))).to.deep.equal([MAX_ASSIGNED_ID - 1n, MAX_ASSIGNED_ID])
    })

    it(`rejects three ${collection}, and adds none`, async () => {
      expect(await rejection(add(3))).to.match(new RegExp(`Fewer than 3 ${collection} IDs are left`))
      expect(added(collection)).to.deep.equal([])
    })
  }
})
