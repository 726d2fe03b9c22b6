import { expect } from 'chai'
import type { Db } from 'mongodb'
import { MongoConnection } from '../../../src/adapters/mongo/mongo-connection.js'
import { ensureIndexes } from '../../../src/adapters/mongo/mongo-indexes.js'
import { OperatorError, StoreUnavailable } from '../../../src/core/errors.js'
import { rejection } from '../../contracts/rejection.js'
import type { MongoDatabase } from '../../support/engines/mongo-engine.js'
import { aMongoDatabase, anOwnMongo } from '../../support/engines/mongo-engine.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { makeHelloResponse, isHello, startMongoStub } from '../../support/mongo-stub.js'
import type { FaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { until } from '../../support/until.js'

describe('the indexes in MongoDB', () => {
  let database: MongoDatabase
  let connection: MongoConnection
  let db: Db

  before(async function () {
    database = await aMongoDatabase(this)
    connection = new MongoConnection(database.url)
    ;({ db } = connection)
  })

  beforeEach(() => db.dropDatabase())

  after(async () => {
    await connection?.close()
    await database?.drop()
  })

  async function listIndexes(collection: string): Promise<Record<string, unknown>[]> {
    const indexes = (await db.collection(collection).listIndexes().toArray()) as Record<string, unknown>[]
    return indexes
      .filter(({ name }) => name !== '_id_')
      .map(({ key, unique, partialFilterExpression, expireAfterSeconds }) => ({
        key: { ...(key as object) },
        ...(unique ? { unique } : {}),
        ...(partialFilterExpression ? { partialFilterExpression } : {}),
        ...(expireAfterSeconds === undefined ? {} : { expireAfterSeconds: Number(expireAfterSeconds) }),
      }))
  }

  async function expectAllIndexes(): Promise<void> {
    expect(await listIndexes('pets')).to.deep.equal([{ key: { status: 1, _id: 1 } }])
    expect(await listIndexes('orders')).to.deep.equal([{ key: { status: 1, _id: 1 } }])
    expect(await listIndexes('apiKeys')).to.have.deep.members([
      { key: { secretHash: 1 }, unique: true },
      { key: { 'oldSecret.hash': 1 }, unique: true, partialFilterExpression: { 'oldSecret.hash': { $exists: true } } },
    ])
    expect(await listIndexes('idempotency')).to.deep.equal([{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }])
  }

  it('are created by the first replica and unchanged by the next ones', async () => {
    for (let replica = 0; replica < 3; replica++) {
      await ensureIndexes(database.url)
      await expectAllIndexes()
    }
  })

  it('are created by eight replicas that start concurrently on an empty server', async () => {
    for (let round = 0; round < 3; round++) {
      await db.dropDatabase()
      await Promise.all(Array.from({ length: 8 }, () => ensureIndexes(database.url)))
      await expectAllIndexes()
      await Promise.all(Array.from({ length: 8 }, () => ensureIndexes(database.url)))
      await expectAllIndexes()
    }
  })

  it('are created for existing data', async () => {
    await db.collection('pets').insertMany(Array.from({ length: 500 }, () => ({ name: 'Rex', status: 'sold' })))
    await db.collection('apiKeys').insertMany(['a', 'b'].map((secretHash) => ({ secretHash })))
    await ensureIndexes(database.url)
    await expectAllIndexes()
  })

  it('leave other indexes unchanged', async () => {
    await db.collection('pets').createIndex({ name: 1 })
    await ensureIndexes(database.url)
    expect(await listIndexes('pets')).to.have.deep.members([{ key: { name: 1 } }, { key: { status: 1, _id: 1 } }])
  })

  for (const [what, prepare, index, collection] of [
    [
      'it exists but is not unique',
      () => db.collection('apiKeys').createIndex({ secretHash: 1 }, { name: 'secretHash_1' }),
      '{"secretHash":1}',
      'apiKeys',
    ],
    [
      'it exists but expires records an hour later',
      () => db.collection('idempotency').createIndex({ expiresAt: 1 }, { expireAfterSeconds: 3600 }),
      '{"expiresAt":1}',
      'idempotency',
    ],
    [
      'two keys have the same secret hash',
      () => db.collection('apiKeys').insertMany([{ secretHash: 'a' }, { secretHash: 'a' }]),
      '{"secretHash":1}',
      'apiKeys',
    ],
  ] as const) {
    it(`that MongoDB rejects are reported with their collection, database and reason: ${what}`, async () => {
      await prepare()
      const error = await rejection(ensureIndexes(database.url))
      expect(error).to.be.instanceOf(OperatorError)
      const { message, cause } = error as OperatorError
      expect(message)
        .to.include(index)
        .and.include(`${db.databaseName}.${collection}`)
        .and.include((cause as Error).message)
    })
  }

  it('report an outage if no server listens', async () => {
    expect(await rejection(ensureIndexes('mongodb://127.0.0.1:1'))).to.be.instanceOf(StoreUnavailable)
  })
})

describe('the indexes on a separate MongoDB', () => {
  let server: OwnEngine
  let proxy: FaultInjectionProxy | undefined

  before(async function () {
    server = await anOwnMongo(this)
  })

  afterEach(() => proxy?.close())
  after(() => server?.stop())

  it('are not named in the error if MongoDB rejects the user, and the error contains no password', async () => {
    const url = server.url.replace('//', '//petstore:hunter2@')
    const error = await rejection(ensureIndexes(url))
    expect(error)
      .to.be.instanceOf(OperatorError)
      .with.property('message')
      .that.matches(/\buser of MONGODB_URL\b/)
      .and.does.not.match(/index|hunter2/)
  })

  it('report an outage if MongoDB stops responding while it creates one, which has no other timeout', async () => {
    proxy = await startFaultInjectionProxy(server.url, { stopForwardingOn: (sent) => sent.includes('createIndexes') })
    const url = `mongodb://${proxy.address}/?directConnection=true&heartbeatFrequencyMS=500`
    expect(await rejection(ensureIndexes(url))).to.be.instanceOf(StoreUnavailable)
  })
})

describe('the command that creates an index', () => {
  for (const [server, hello, quorum] of [
    ['a replica set waits for a majority of the members', { setName: 'petstore' }, 'majority'],
    ['a standalone server has no commit quorum', {}, undefined],
  ] as const) {
    it(`sent to ${server}`, async () => {
      const stub = await startMongoStub((command) => (isHello(command) ? makeHelloResponse(hello) : {}))
      try {
        await ensureIndexes(`mongodb://127.0.0.1:${stub.port}/?directConnection=true`)
        expect(stub.received('createIndexes').map(({ commitQuorum }) => commitQuorum)).to.deep.equal(Array(4).fill(quorum))
      } finally {
        await stub.close()
      }
    })
  }

  for (const [outcome, response] of [
    ['created', {}],
    ['rejected', { ok: 0, code: 86, errmsg: 'An index has the same name' }],
  ] as const) {
    it(`comes over a connection that is closed when the indexes are ${outcome}`, async () => {
      const stub = await startMongoStub((command) => {
        if (isHello(command)) return makeHelloResponse({})
        return 'createIndexes' in command ? response : {}
      })
      try {
        await ensureIndexes(`mongodb://127.0.0.1:${stub.port}/?directConnection=true`).catch(() => undefined)
        await until('every connection is closed', () => stub.openConnections === 0)
      } finally {
        await stub.close()
      }
    })
  }

  for (const code of [1, 8]) {
    it(`is rejected with its reason for the error code ${code}, which a request treats as an outage`, async () => {
      const stub = await startMongoStub((command) => {
        if (isHello(command)) return makeHelloResponse({})
        return 'createIndexes' in command ? { ok: 0, code, errmsg: 'the disk is full' } : {}
      })
      try {
        expect(await rejection(ensureIndexes(`mongodb://127.0.0.1:${stub.port}/?directConnection=true`)))
          .to.be.instanceOf(OperatorError)
          .with.property('message')
          .that.includes('the disk is full')
      } finally {
        await stub.close()
      }
    })
  }
})
