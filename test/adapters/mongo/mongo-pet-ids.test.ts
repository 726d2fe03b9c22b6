import { expect } from 'chai'
import type { Db } from 'mongodb'
import { MongoPetIds } from '../../../src/adapters/mongo/mongo-pet-ids.js'
import { getPetCollection } from '../../../src/adapters/mongo/mongo-pet-store.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import { MAX_ASSIGNED_ID } from '../../../src/core/int64.js'
import type { PetIds } from '../../../src/core/ports/pet-ids.js'
import { rejection } from '../../contracts/rejection.js'
import type { MongoDatabase } from '../../support/engines/mongo-engine.js'
import { aMongoDatabase, anOwnMongo } from '../../support/engines/mongo-engine.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { MongoData } from '../../support/mongo-data.js'
import type { FaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { until } from '../../support/until.js'

const BLOCK_SIZE = 10

interface StoredCounter {
  _id: string
  last: bigint
}

describe('the pet IDs from MongoDB, in blocks', () => {
  let database: MongoDatabase
  let data: MongoData
  let db: Db

  before(async function () {
    database = await aMongoDatabase(this)
    data = await MongoData.withIndexes(database.url)
  })

  beforeEach(async () => {
    await data.empty()
    ;({ db } = data.connect())
  })

  afterEach(() => data.close())
  after(() => database?.drop())

  const aReplica = () => new MongoPetIds(data.connect(), BLOCK_SIZE)
  const untilReserved = (blocks: number) => until(`${blocks} blocks are reserved`, async () => (await countBlocks(db)) === blocks)

  it('begin at 1 and have no gaps with a single replica', async () => {
    const petIds = aReplica()
    const ids: bigint[] = []
    for (let count = 0; count < 55; count++) ids.push(await petIds.next())
    expect(ids).to.deep.equal(Array.from({ length: 55 }, (_, index) => BigInt(index + 1)))
  })

  it('cost one write per block, however many requests are concurrent', async () => {
    expect(new Set(await take(aReplica(), 1_000)).size).to.equal(1_000)
    expect(await countBlocks(db)).to.be.within(100, 101)
  })

  it('are prefetched when half of a block is used, and not earlier', async () => {
    const petIds = aReplica()
    await take(petIds, 5)
    expect(await countBlocks(db)).to.equal(1)
    await take(petIds, 1)
    await untilReserved(2)
    await take(petIds, 9)
    expect(await countBlocks(db)).to.equal(2)
    await take(petIds, 1)
    await untilReserved(3)
  })

  it('skip at most the rest of a block and a prefetched block after a restart', async () => {
    await take(aReplica(), 3)
    expect(await aReplica().next()).to.equal(11n)
    const third = aReplica()
    await take(third, 8)
    await untilReserved(4)
    expect(await aReplica().next()).to.equal(41n)
  })

  it('in blocks of one ascend across all replicas in the order of the requests', async () => {
    const replicas = [new MongoPetIds(data.connect(), 1), new MongoPetIds(data.connect(), 1)] as const
    const ids: bigint[] = []
    for (const index of [0, 1, 1, 1, 0, 0, 1, 0]) ids.push(await (replicas[index] as PetIds).next())
    expect(ids).to.deep.equal([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n])
  })

  it('are unique if eight replicas create the counter concurrently', async () => {
    const dbs = Array.from({ length: 8 }, () => data.connect())
    for (let round = 0; round < 40; round++) {
      await db.collection('counters').deleteMany({})
      const ids = (await Promise.all(dbs.map((replica) => take(new MongoPetIds(replica, 2), 3)))).flat()
      expect(new Set(ids).size, `round ${round}: ${ids.join(' ')}`).to.equal(24)
    }
  })

  const insertPet = (id: bigint) => getPetCollection(db).insertOne({ _id: id, name: 'Rex', categoryId: 7n, status: 'sold' })

  it('are not skipped if another replica reserves a block and adds a pet while this one reserves a block', async () => {
    const [connection, other] = [data.connect(), new MongoPetIds(data.connect(), BLOCK_SIZE)]
    await other.next()
    const call = connection.call.bind(connection)
    let calls = 0
    connection.call = async (...args) => {
      calls += 1
      if (calls > 1) for (let id = 0; id < BLOCK_SIZE; id++) await insertPet(await other.next())
      return call(...args)
    }
    expect(Number(await new MongoPetIds(connection, BLOCK_SIZE).next())).to.be.below(1_000)
    expect(calls).to.be.above(1)
  })

  describe('whose counter was restored from a backup', () => {
    const restore = (last: bigint) => db.collection<StoredCounter>('counters').updateOne({ _id: 'pets' }, { $set: { last } })

    it('are above all pets, and above the blocks that running replicas have reserved', async () => {
      const running = aReplica()
      const ids = await take(running, 46)
      for (const id of ids) await insertPet(id)
      await untilReserved(6)
      await restore(5n)
      const newer = aReplica()
      ids.push(...(await take(newer, 25)), ...(await take(running, 50)), ...(await take(newer, 25)))
      expect(new Set(ids).size).to.equal(ids.length)
      expect(ids.slice(46).filter((id) => id <= 46n)).to.deep.equal([])
    })

    it('are unique on a replica that runs alone and whose block is unused', async () => {
      const petIds = aReplica()
      const ids = await take(petIds, 1)
      await restore(0n)
      ids.push(...(await take(petIds, 50)))
      expect(new Set(ids).size).to.equal(51)
    })

    it('are unique on eight replicas that notice it concurrently', async () => {
      await take(aReplica(), 1)
      await insertPet(500n)
      await restore(5n)
      const ids = (await Promise.all(Array.from({ length: 8 }, () => take(aReplica(), 30)))).flat()
      expect(new Set(ids).size).to.equal(240)
      expect(ids.filter((id) => id <= 500n)).to.deep.equal([])
    })

    it('are above all pets if the counter is missing', async () => {
      await insertPet(500n)
      expect((await aReplica().next()) > 500n).to.equal(true)
    })

    it('continue from the counter, up to 2^53 − 1, if a pet was imported with an ID near the maximum', async () => {
      await insertPet(MAX_ASSIGNED_ID)
      await insertPet(MAX_ASSIGNED_ID - 1_000n)
      await insertPet(2n ** 62n)
      expect(await take(aReplica(), 3)).to.deep.equal([1n, 2n, 3n])
    })
  })

  it('end at 2^53 − 1 inclusive, in a shorter block', async () => {
    const last = BigInt(Number.MAX_SAFE_INTEGER)
    await db.collection<StoredCounter>('counters').insertOne({ _id: 'pets', last: last - 3n })
    const petIds = aReplica()
    expect(await take(petIds, 3)).to.deep.equal([last - 2n, last - 1n, last])
    for (const replica of [petIds, aReplica()]) {
      expect(await rejection(replica.next()))
        .to.be.instanceOf(Error)
        .and.not.instanceOf(StoreUnavailable)
    }
  })

  it('end at 2^53 − 1 inclusive, also in blocks of one', async () => {
    const last = BigInt(Number.MAX_SAFE_INTEGER)
    await db.collection<StoredCounter>('counters').insertOne({ _id: 'pets', last: last - 1n })
    const petIds = new MongoPetIds(data.connect(), 1)
    expect(await petIds.next()).to.equal(last)
    expect(await rejection(petIds.next())).to.be.instanceOf(Error)
  })
})

describe('the pet IDs from MongoDB, if it stops responding', () => {
  let server: OwnEngine
  let data: MongoData | undefined
  let proxy: FaultInjectionProxy | undefined

  before(async function () {
    server = await anOwnMongo(this)
  })

  afterEach(async () => {
    await data?.close()
    await proxy?.close()
  })
  after(() => server?.stop())

  it('come from the prefetched block, then report an outage, and continue when MongoDB is available again', async () => {
    proxy = await startFaultInjectionProxy(server.url)
    data = await MongoData.withIndexes(`mongodb://${proxy.address}/?directConnection=true`)
    const mongo = data.connect()
    const { db } = mongo
    const petIds = new MongoPetIds(mongo, BLOCK_SIZE)
    await take(petIds, 6)
    await until('the second block is reserved', async () => (await countBlocks(db)) === 2)

    proxy.stopForwarding()
    expect(await take(petIds, 14)).to.deep.equal(Array.from({ length: 14 }, (_, index) => BigInt(index + 7)))
    expect(await rejection(petIds.next())).to.be.instanceOf(StoreUnavailable)

    proxy.resume()
    let id = 0n
    await until('an ID is assigned', async () => {
      id = await petIds.next().catch(() => 0n)
      return id > 0n
    })
    expect(id > 20n).to.equal(true)
  })
})

function take(petIds: PetIds, count: number): Promise<bigint[]> {
  return Promise.all(Array.from({ length: count }, () => petIds.next()))
}

/** The number of blocks that all replicas together have reserved. */
async function countBlocks(db: Db): Promise<number> {
  const counter = await db.collection<{ _id: string; last: number }>('counters').findOne({ _id: 'pets' })
  return (counter?.last ?? 0) / BLOCK_SIZE
}
