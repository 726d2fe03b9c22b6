import { expect } from 'chai'
import type { Document } from 'mongodb'
import { MongoConnection } from '../../../src/adapters/mongo/mongo-connection.js'
import { MongoPetStore } from '../../../src/adapters/mongo/mongo-pet-store.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import { rejection } from '../../contracts/rejection.js'
import { aPet } from '../../support/builders.js'
import type { MongoStub } from '../../support/mongo-stub.js'
import { isHello, makeHelloResponse, startMongoStub } from '../../support/mongo-stub.js'
import { until } from '../../support/until.js'

const aDuplicate = (index: number) => ({ index, code: 11000, errmsg: 'E11000 duplicate key error' })
const WRITE_CONCERN_ERROR = { code: 64, errmsg: 'waiting for replication timed out' }

describe('pets that are inserted in the same turn of the event loop', () => {
  let stub: MongoStub
  let connection: MongoConnection
  let pets: MongoPetStore
  let response: Document
  let isUp: boolean

  beforeEach(async () => {
    response = {}
    isUp = true
    stub = await startMongoStub((command) => {
      if (!isHello(command)) return 'insert' in command ? { n: 0, ...response } : {}
      // Without `setName`, the server is not a replica set, so the driver does not retry writes.
      return makeHelloResponse({ logicalSessionTimeoutMinutes: 30 })
    })
    connection = new MongoConnection(`mongodb://127.0.0.1:${stub.port}/`)
    connection.onChange((nowUp) => (isUp = nowUp))
    await connection.open()
    pets = new MongoPetStore(connection)
  })

  afterEach(async () => {
    await connection.close()
    await stub.close()
  })

  const insertThree = () => Promise.allSettled([1n, 2n, 3n].map((id) => pets.insert(aPet({ id }))))
  const readOutcomes = async () =>
    (await insertThree()).map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as Error)))

  it('are sent in one command, and those of a later turn in another', async () => {
    const firstThree = insertThree()
    await until('the first command is sent', () => stub.received('insert').length === 1)
    await Promise.all([firstThree, pets.insert(aPet({ id: 4n }))])
    const sentIds = stub.received('insert').map(({ documents }) => (documents as { _id: unknown }[]).map(({ _id }) => Number(_id)))
    expect(sentIds).to.deep.equal([[1, 2, 3], [4]])
  })

  it('do not depend on each other: one whose ID is taken does not affect the others', async () => {
    response = { n: 2, writeErrors: [aDuplicate(1)] }
    expect(await readOutcomes()).to.deep.equal(['inserted', 'taken', 'inserted'])
    expect(stub.received('insert')[0]).to.include({ ordered: false })
  })

  it('get different errors if the server rejects them for different reasons', async () => {
    response = { n: 0, writeErrors: [aDuplicate(0), { index: 1, code: 121, errmsg: 'invalid' }, { index: 2, code: 11600, errmsg: 'ends' }] }
    const [first, second, third] = await readOutcomes()
    expect(first).to.equal('taken')
    expect(second).to.include({ code: 121, message: 'invalid' })
    expect(third).to.be.instanceOf(StoreUnavailable)
  })

  for (const [what, outage] of [
    ['a write is not confirmed by a majority', { n: 3, writeConcernError: WRITE_CONCERN_ERROR }],
    [
      'one is taken and a write is not confirmed by a majority',
      { n: 2, writeErrors: [aDuplicate(0)], writeConcernError: WRITE_CONCERN_ERROR },
    ],
    ['the server does not know the write concern', { n: 3, writeConcernError: { code: 79, errmsg: 'unknown write concern' } }],
    ['the server stops', { ok: 0, code: 11600, errmsg: 'interrupted at shutdown' }],
  ] as const) {
    it(`are all reported as unavailable, and MongoDB as down, if ${what}`, async () => {
      response = outage
      for (const outcome of await readOutcomes()) expect(outcome).to.be.instanceOf(StoreUnavailable)
      expect(isUp).to.equal(false)
    })
  }

  it('are all reported as unavailable if the connection breaks', async () => {
    await pets.insert(aPet({ id: 9n }))
    await stub.close()
    for (const outcome of await readOutcomes()) expect(outcome).to.be.instanceOf(StoreUnavailable)
    expect(isUp).to.equal(false)
    stub = await startMongoStub(() => ({}))
  })

  it('all get the error of the command if a retry cannot help', async () => {
    response = { ok: 0, code: 13, errmsg: 'not authorized' }
    const reason = await rejection(pets.insert(aPet({ id: 1n })))
    expect(reason).to.include({ code: 13, message: 'not authorized' })
    expect(reason).to.not.be.instanceOf(StoreUnavailable)
    expect(isUp).to.equal(true)
  })
})
