import { expect } from 'chai'
import type { ObjectId } from 'mongodb'
import { MongoApiKeyHistory } from '../../../src/adapters/mongo/mongo-api-key-history.js'
import { MongoApiKeyStore } from '../../../src/adapters/mongo/mongo-api-key-store.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import { aChange, anApiKey, anIssue, anOldSecret } from '../../support/builders.js'
import { rejection } from '../../contracts/rejection.js'
import type { MongoDatabase } from '../../support/engines/mongo-engine.js'
import { aMongoDatabase, anOwnMongo } from '../../support/engines/mongo-engine.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { MongoData } from '../../support/mongo-data.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { FaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { collectUnhandledRejections } from '../../support/unhandled-rejections.js'

const KEY = anApiKey()

describe('an API key that an earlier version stored in MongoDB', () => {
  let database: MongoDatabase
  let data: MongoData

  before(async function () {
    database = await aMongoDatabase(this)
    data = await MongoData.withIndexes(database.url)
  })

  after(async () => {
    await data?.close()
    await database?.drop()
  })

  it('is found and can be rotated, and its history begins with its first change', async () => {
    const connection = data.connect()
    const { keyId, createdAtMs, version, ...rest } = KEY
    const stored = { _id: keyId as unknown as ObjectId, ...rest, createdAt: new Date(createdAtMs), generation: version }
    await connection.db.collection('apiKeys').insertMany([stored, { ...stored, _id: 'key_two' as unknown as ObjectId, secretHash: 'two' }])
    const keys = new MongoApiKeyStore(connection, new MovableClock())
    const history = new MongoApiKeyHistory(connection)
    expect(await keys.findBySecretHash(KEY.secretHash)).to.deep.equal(KEY)
    expect(await history.list({})).to.deep.equal([])

    const change = aChange({ action: 'rotated' })
    const rotated = { ...KEY, secretHash: 'new', oldSecret: anOldSecret({ hash: KEY.secretHash }), version: 2 }
    expect(await keys.update(rotated, change)).to.equal('updated')
    for (const hash of ['new', KEY.secretHash]) expect(await keys.findBySecretHash(hash)).to.include({ keyId, secretHash: 'new' })
    expect(await history.list({})).to.deep.equal([{ keyId, owner: KEY.owner, ...change }])
  })
})

describe('the API keys in MongoDB, if it stops responding', () => {
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

  it('are found although their use cannot be recorded, without an unhandled rejection', async () => {
    proxy = await startFaultInjectionProxy(server.url, { stopForwardingOn: (sent) => sent.includes('lastUsedAt') })
    data = await MongoData.withIndexes(`mongodb://${proxy.address}/?directConnection=true`)
    const keys = new MongoApiKeyStore(data.connect(), new MovableClock())
    await keys.insert(KEY, anIssue())
    const unhandled = await collectUnhandledRejections(async () => {
      expect(await keys.findBySecretHash(KEY.secretHash)).to.deep.equal(KEY)
      // When the second lookup times out, recording the use has timed out as well.
      for (let count = 0; count < 2; count++)
        expect(await rejection(keys.findBySecretHash(KEY.secretHash))).to.be.instanceOf(StoreUnavailable)
    })
    expect(unhandled).to.deep.equal([])

    proxy.resume()
    await data.untilItIsBack()
    expect(await keys.findById(KEY.keyId)).to.deep.equal(KEY)
  })
})
