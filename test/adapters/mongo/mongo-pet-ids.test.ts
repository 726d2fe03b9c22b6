import { expect } from 'chai'
import type { Db } from 'mongodb'
import { MongoPetIds } from '../../../src/adapters/mongo/mongo-pet-ids.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import type { PetIds } from '../../../src/core/ports/pet-ids.js'
import { rejection } from '../../contracts/rejection.js'
import type { MongoDatabase } from '../../support/engines/mongo-engine.js'
import { aMongoDatabase, anOwnMongo } from '../../support/engines/mongo-engine.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { MongoData } from '../../support/mongo-data.js'
import type { FaultProxy } from '../../support/fault-proxy.js'
import { startFaultProxy } from '../../support/fault-proxy.js'
import { until } from '../../support/until.js'

const BLOCK_SIZE = 10

describe('the pet ids from MongoDB, in blocks', () => {
  let database: MongoDatabase
  let data: MongoData
  let db: Db

  before(async function () {
    database = await aMongoDatabase(this)
    data = await MongoData.withIndexes(database.url)
  })

  beforeEach(async () => {
    await data.empty()
    db = data.connect()
  })

  afterEach(() => data.close())
  after(() => database?.drop())

  const aReplica = () => new MongoPetIds(data.connect(), BLOCK_SIZE)
  const untilTaken = (blocks: number) => until(`${blocks} blocks are taken`, async () => (await blocksTaken(db)) === blocks)

  it('begin at 1 and follow each other without gaps as long as one replica is alone', async () => {
    const petIds = aReplica()
    const ids: bigint[] = []
    for (let count = 0; count < 55; count++) ids.push(await petIds.next())
    expect(ids).to.deep.equal(Array.from({ length: 55 }, (_, index) => BigInt(index + 1)))
  })

  it('cost one write for a block, however many ask at the same time', async () => {
    expect(new Set(await take(aReplica(), 1_000)).size).to.equal(1_000)
    expect(await blocksTaken(db)).to.be.within(100, 101)
  })

  it('are fetched for the next block when half of one is gone, and not before', async () => {
    const petIds = aReplica()
    await take(petIds, 5)
    expect(await blocksTaken(db)).to.equal(1)
    await take(petIds, 1)
    await untilTaken(2)
    await take(petIds, 9)
    expect(await blocksTaken(db)).to.equal(2)
    await take(petIds, 1)
    await untilTaken(3)
  })

  it('lose the rest of a block with a restart, and no more than that and the one fetched ahead', async () => {
    await take(aReplica(), 3)
    expect(await aReplica().next()).to.equal(11n)
    const third = aReplica()
    await take(third, 8)
    await untilTaken(4)
    expect(await aReplica().next()).to.equal(41n)
  })

  it('one at a time run upwards over all replicas, in the order in which they were asked for', async () => {
    const replicas = [new MongoPetIds(data.connect(), 1), new MongoPetIds(data.connect(), 1)] as const
    const ids: bigint[] = []
    for (const index of [0, 1, 1, 1, 0, 0, 1, 0]) ids.push(await (replicas[index] as PetIds).next())
    expect(ids).to.deep.equal([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n])
  })

  it('are different for eight replicas that make the counter at the same time, time after time', async () => {
    const dbs = Array.from({ length: 8 }, () => data.connect())
    for (let round = 0; round < 40; round++) {
      await db.collection('counters').deleteMany({})
      const ids = (await Promise.all(dbs.map((replica) => take(new MongoPetIds(replica, 2), 3)))).flat()
      expect(new Set(ids).size, `round ${round}: ${ids.join(' ')}`).to.equal(24)
    }
  })

  it('end at 2^53 − 1, the last of them included, in a block that is cut short there', async () => {
    const last = BigInt(Number.MAX_SAFE_INTEGER)
    await db.collection<{ _id: string; last: bigint }>('counters').insertOne({ _id: 'pets', last: last - 3n })
    const petIds = aReplica()
    expect(await take(petIds, 3)).to.deep.equal([last - 2n, last - 1n, last])
    for (const replica of [petIds, aReplica()]) {
      expect(await rejection(replica.next()))
        .to.be.instanceOf(Error)
        .and.not.instanceOf(StoreUnavailable)
    }
  })
})

describe('the pet ids from a MongoDB that falls silent', () => {
  let server: OwnEngine
  let data: MongoData | undefined
  let proxy: FaultProxy | undefined

  before(async function () {
    server = await anOwnMongo(this)
  })

  afterEach(async () => {
    await data?.close()
    await proxy?.close()
  })
  after(() => server?.stop())

  it('come from the block that was fetched ahead, then are an outage, and go on when it is back', async () => {
    proxy = await startFaultProxy(server.url)
    data = await MongoData.withIndexes(`mongodb://${proxy.address}/?directConnection=true`)
    const db = data.connect()
    const petIds = new MongoPetIds(db, BLOCK_SIZE)
    await take(petIds, 6)
    await until('the second block is taken', async () => (await blocksTaken(db)) === 2)

    proxy.fallSilent()
    expect(await take(petIds, 14)).to.deep.equal(Array.from({ length: 14 }, (_, index) => BigInt(index + 7)))
    expect(await rejection(petIds.next())).to.be.instanceOf(StoreUnavailable)

    proxy.pass()
    await data.untilItIsBack()
    expect((await petIds.next()) > 20n).to.equal(true)
  })
})

function take(petIds: PetIds, count: number): Promise<bigint[]> {
  return Promise.all(Array.from({ length: count }, () => petIds.next()))
}

/** How many blocks all replicas together have taken: so often was the counter written. */
async function blocksTaken(db: Db): Promise<number> {
  const counter = await db.collection<{ _id: string; last: number }>('counters').findOne({ _id: 'pets' })
  return (counter?.last ?? 0) / BLOCK_SIZE
}
