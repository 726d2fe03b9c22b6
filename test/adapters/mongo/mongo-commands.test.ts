import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import type { Document } from 'mongodb'
import { Long } from 'mongodb'
import { findRows } from '../../../src/adapters/mongo/find-rows.js'
import { MongoApiKeyHistory } from '../../../src/adapters/mongo/mongo-api-key-history.js'
import { MongoApiKeyStore } from '../../../src/adapters/mongo/mongo-api-key-store.js'
import { CALL_TIMEOUT_MS } from '../../../src/adapters/mongo/mongo-call.js'
import { MongoConnection } from '../../../src/adapters/mongo/mongo-connection.js'
import { MongoIdempotencyStore } from '../../../src/adapters/mongo/mongo-idempotency-store.js'
import { MongoOrderStore } from '../../../src/adapters/mongo/mongo-order-store.js'
import { MongoPetIds } from '../../../src/adapters/mongo/mongo-pet-ids.js'
import { getPetCollection, MongoPetStore } from '../../../src/adapters/mongo/mongo-pet-store.js'
import { BULK_TIMEOUT_MS, MongoSeedStore } from '../../../src/adapters/mongo/mongo-seed-store.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import { aChange, aPet, anApiKey, anIssue } from '../../support/builders.js'
import { rejection } from '../../contracts/rejection.js'
import type { MongoStub } from '../../support/mongo-stub.js'
import { makeHelloResponse, isHello, startMongoStub } from '../../support/mongo-stub.js'
import { MovableClock } from '../../support/movable-clock.js'
import { collectUnhandledRejections } from '../../support/unhandled-rejections.js'
import { until } from '../../support/until.js'

const clock = new MovableClock()
const RECORD = { fingerprint: 'of a pet', petId: 1n }

/** Every method of every store. The first element of each is the commands that it sends. */
const REQUEST_METHODS: Readonly<Record<string, [string[], (mongo: MongoConnection) => Promise<unknown>]>> = {
  'MongoPetStore.insert': [['insert'], (mongo) => new MongoPetStore(mongo).insert(aPet())],
  'MongoPetStore.find': [['find'], (mongo) => new MongoPetStore(mongo).find(1n)],
  'MongoPetStore.list': [['find'], (mongo) => new MongoPetStore(mongo).list({ limit: 5, status: 'sold', after: 1n })],
  'MongoOrderStore.list': [['find'], (mongo) => new MongoOrderStore(mongo).list({ limit: 5 })],
  'MongoPetIds.next': [['find', 'findAndModify', 'insert', 'findAndModify'], (mongo) => new MongoPetIds(mongo, 1).next()],
  'MongoIdempotencyStore.claim': [
    ['insert', 'findAndModify'],
    (mongo) => new MongoIdempotencyStore(mongo, clock).claim({ keyId: 'key_one', idempotencyKey: 'taken' }, RECORD),
  ],
  'MongoApiKeyStore.insert': [['insert'], (mongo) => new MongoApiKeyStore(mongo, clock).insert(anApiKey(), anIssue())],
  'MongoApiKeyStore.findBySecretHash': [['find', 'findAndModify'], (mongo) => new MongoApiKeyStore(mongo, clock).findBySecretHash('hash')],
  'MongoApiKeyStore.findById': [['find'], (mongo) => new MongoApiKeyStore(mongo, clock).findById('key_one')],
  'MongoApiKeyStore.list': [['find'], (mongo) => new MongoApiKeyStore(mongo, clock).list({ owner: 'Acme' })],
  'MongoApiKeyStore.update': [['findAndModify'], (mongo) => new MongoApiKeyStore(mongo, clock).update(anApiKey(), aChange())],
  'MongoApiKeyHistory.add': [['findAndModify'], (mongo) => new MongoApiKeyHistory(mongo).add('key_one', aChange())],
  'MongoApiKeyHistory.list': [['aggregate'], (mongo) => new MongoApiKeyHistory(mongo).list({ owner: 'Acme' })],
}

const BULK_METHODS: Readonly<Record<string, [string, (store: MongoSeedStore) => Promise<unknown>]>> = {
  countPets: ['aggregate', (store) => store.countPets()],
  countOrders: ['aggregate', (store) => store.countOrders()],
  addPets: ['insert', (store) => store.addPets([{ name: 'Rex', categoryId: 7n, status: 'sold' }])],
  addOrders: ['insert', (store) => store.addOrders([{ petId: 1n, quantity: 1, status: 'placed', complete: false }])],
}

describe('the commands that the service sends to MongoDB', () => {
  let stub: MongoStub
  let connection: MongoConnection
  let counterExists: boolean
  let isTimedOut: () => boolean
  let responseDelayMs: number

  beforeEach(async () => {
    counterExists = true
    isTimedOut = () => false
    responseDelayMs = 0
    stub = await startMongoStub(async (command) => {
      if ('aggregate' in command || 'insert' in command) await setTimeout(responseDelayMs)
      return respond(command)
    })
    connection = new MongoConnection(
      `mongodb://127.0.0.1:${stub.port}/?directConnection=true&retryWrites=false&readConcernLevel=local&readPreference=nearest`,
    )
    await connection.open()
  })

  afterEach(async () => {
    await connection.close()
    await stub.close()
  })

  function respond(command: Document): Document {
    if (isHello(command))
      return makeHelloResponse({ setName: 'petstore', logicalSessionTimeoutMinutes: 30, hosts: [`127.0.0.1:${stub.port}`] })
    if (isTimedOut()) return { ok: 0, code: 50, errmsg: 'operation exceeded time limit' }
    const collection = command['insert'] ?? command['find'] ?? command['findAndModify']
    if ('findAndModify' in command) {
      if (collection === 'idempotency') return { value: { _id: 'scope', fingerprint: 'of a pet', petId: Long.fromInt(1) } }
      if (collection !== 'counters') return { value: null }
      return { value: counterExists ? { _id: 'pets', last: Long.fromInt(100) } : null }
    }
    if (collection === 'counters') counterExists = true
    if (collection === 'idempotency') return { n: 0, writeErrors: [{ index: 0, code: 11000, errmsg: 'E11000 duplicate key error' }] }
    if ('find' in command) {
      const oldSecret = { hash: 'old', hint: 'old', expiresAt: new Date(clock.nowMs() + 1_000) }
      const key = { _id: 'key_one', secretHash: 'hash', oldSecret, createdAt: new Date(), generation: 1 }
      const isLookup =
        collection === 'apiKeys' && ['hash', 'old'].includes(command['filter'].secretHash ?? command['filter']['oldSecret.hash'])
      return { cursor: { id: Long.ZERO, ns: `petstore.${collection}`, firstBatch: isLookup ? [key] : [] } }
    }
    return 'aggregate' in command ? { cursor: { id: Long.ZERO, ns: 'petstore.pets', firstBatch: [] } } : { n: 1 }
  }

  const sent = () => stub.commands.filter((command) => !isHello(command) && !('endSessions' in command))

  for (const [name, [commands, call]] of Object.entries(REQUEST_METHODS)) {
    it(`carry the server time limit of a request: ${name}`, async () => {
      counterExists = false
      await call(connection)
      await until('all commands are sent', () => sent().length >= commands.length)
      expect(sent().map((command) => [Object.keys(command)[0], command['maxTimeMS']])).to.deep.equal(
        commands.map((command) => [command, CALL_TIMEOUT_MS]),
      )
    })
  }

  for (const [name, [bulkCommand, call]] of Object.entries(BULK_METHODS)) {
    it(`carry the longer server time limit of bulk operations: MongoSeedStore.${name}`, async () => {
      await call(new MongoSeedStore(connection))
      const [bulk, ...others] = sent().reverse()
      expect(bulk?.[bulkCommand]).to.be.a('string')
      expect(bulk?.['maxTimeMS']).to.equal(BULK_TIMEOUT_MS)
      for (const command of others) expect(command['maxTimeMS']).to.equal(CALL_TIMEOUT_MS)
    })
  }

  it('of bulk operations may take longer than those of a request', async () => {
    const bulkConnection = new MongoConnection(`mongodb://127.0.0.1:${stub.port}/?directConnection=true`, {
      callTimeoutMs: BULK_TIMEOUT_MS,
    })
    responseDelayMs = CALL_TIMEOUT_MS + 100
    try {
      await Promise.all(Object.values(BULK_METHODS).map(([, call]) => call(new MongoSeedStore(bulkConnection))))
    } finally {
      await bulkConnection.close()
    }
  })

  it('carry the server time limit of a request in health checks', async () => {
    expect(await connection.isUp()).to.equal(true)
    expect(sent()).to.have.lengthOf(1)
    expect(sent()[0]).to.include({ ping: 1, maxTimeMS: CALL_TIMEOUT_MS })
  })

  it('are retryable writes, whatever the URL says', async () => {
    await new MongoPetStore(connection).insert(aPet())
    expect(sent()[0]).to.include.keys('insert', 'txnNumber', 'lsid')
  })

  it('fail if the response does not have all rows, because they are too large', async () => {
    const cursor = { id: 7n, firstBatch: [{ _id: 1n }] }
    const mongo = {
      call: (_what: string, read: () => Promise<unknown>) => read(),
      db: { command: async () => ({ cursor }) },
    } as unknown as MongoConnection
    const found = findRows(mongo, getPetCollection(connection.db), { filter: {}, limit: 2 })
    expect(await rejection(found)).to.have.property('message', 'MongoDB returned only 1 of the rows in pets, because they are too large')
  })

  it('are majority reads whose response has all rows, whatever the URL says', async () => {
    const reads = [
      () => new MongoPetStore(connection).find(1n),
      () => new MongoPetStore(connection).list({ limit: 101 }),
      () => new MongoOrderStore(connection).list({ limit: 101 }),
    ]
    for (const read of reads) await read()
    for (const { limit, batchSize, readConcern, $readPreference } of sent()) {
      expect({ batchSize, readConcern }).to.deep.equal({ batchSize: Number(limit) + 1, readConcern: { level: 'majority' } })
      // With a direct connection, the driver sends this for `primary`.
      expect($readPreference).to.deep.equal({ mode: 'primaryPreferred' })
    }
    expect(sent()).to.have.lengthOf(reads.length)
  })

  it('may fail while a block of pet IDs is prefetched, without an unhandled rejection or a failed request', async () => {
    const petIds = new MongoPetIds(connection, 10)
    const isPrefetch = () => stub.received('findAndModify').length > 1
    isTimedOut = isPrefetch
    const unhandled = await collectUnhandledRejections(async () => {
      const ids = await Promise.all(Array.from({ length: 10 }, () => petIds.next()))
      expect(ids).to.deep.equal(Array.from({ length: 10 }, (_, index) => BigInt(91 + index)))
      await until('the prefetch has failed', isPrefetch)
      expect(await rejection(petIds.next())).to.be.instanceOf(StoreUnavailable)
    })
    expect(unhandled).to.deep.equal([])
  })
})
