import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import type { Document } from 'mongodb'
import { Long } from 'mongodb'
import { MongoConnection } from '../../../src/adapters/mongo/mongo-connection.js'
import { MongoPetStore } from '../../../src/adapters/mongo/mongo-pet-store.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import { rejection } from '../../contracts/rejection.js'
import type { MongoStub } from '../../support/mongo-stub.js'
import { isHello, makeHelloResponse, startMongoStub } from '../../support/mongo-stub.js'
import { until } from '../../support/until.js'

const REQUESTS = 20
const RESPONSE_DELAY_MS = 3_000

describe('a MongoDB', function () {
  this.timeout(20_000)
  let stub: MongoStub
  let connections: number
  let findDelayMs: number
  let findError: Document | undefined
  let connection: MongoConnection
  let pets: MongoPetStore

  beforeEach(async () => {
    connections = 0
    findDelayMs = 0
    findError = undefined
    stub = await startMongoStub(respond)
    connection = new MongoConnection(`mongodb://127.0.0.1:${stub.port}/?directConnection=true`)
    await connection.open()
    pets = new MongoPetStore(connection)
  })

  afterEach(async () => {
    await connection.close()
    await stub.close()
  })

  async function respond(command: Document): Promise<Document> {
    if (isHello(command)) {
      // Each connection begins with a handshake, which names the client.
      if ('client' in command) connections += 1
      return makeHelloResponse({ setName: 'petstore', logicalSessionTimeoutMinutes: 30, hosts: [`127.0.0.1:${stub.port}`] })
    }
    if (!('find' in command)) return {}
    await setTimeout(findDelayMs)
    return findError ?? { cursor: { id: Long.ZERO, ns: 'petstore.pets', firstBatch: [] } }
  }

  describe(`that responds after ${RESPONSE_DELAY_MS} ms`, () => {
    it('gets one query per request and keeps its connections, and each request fails within 2 s', async () => {
      findDelayMs = 200
      await Promise.all(Array.from({ length: REQUESTS }, () => pets.find(1n)))
      const before = { finds: stub.received('find').length, connections }

      findDelayMs = RESPONSE_DELAY_MS
      const startMs = performance.now()
      const reasons = await Promise.all(Array.from({ length: REQUESTS }, () => rejection(pets.find(1n))))
      expect(performance.now() - startMs).to.be.below(2_000)
      for (const reason of reasons) expect(reason).to.be.instanceOf(StoreUnavailable)

      // Until every response has arrived, the driver could still try again.
      await setTimeout(RESPONSE_DELAY_MS)
      expect(stub.received('find').length - before.finds).to.equal(REQUESTS)
      findDelayMs = 200
      await Promise.all(Array.from({ length: REQUESTS }, () => pets.find(1n)))
      expect(connections - before.connections).to.be.at.most(3)
    })
  })

  it('that does not respond gets one query per request, even after the connection counts as broken', async () => {
    findDelayMs = 60_000
    expect(await rejection(pets.find(1n))).to.be.instanceOf(StoreUnavailable)
    const open = stub.openConnections
    await until('the connection is closed', () => stub.openConnections < open)
    await setTimeout(500)
    expect(stub.received('find')).to.have.lengthOf(1)
  })

  it('whose connections are all in use fails further requests within 2 s, and stays up for health checks on a connection of their own', async () => {
    const url = `mongodb://127.0.0.1:${stub.port}/?directConnection=true&maxPoolSize=1`
    const [busy, health] = [new MongoConnection(url), new MongoConnection(url, { maxPoolSize: 1 })]
    try {
      await Promise.all([busy.open(), health.open()])
      findDelayMs = RESPONSE_DELAY_MS
      const startMs = performance.now()
      const reasons = Promise.all(Array.from({ length: 3 }, () => rejection(new MongoPetStore(busy).find(1n))))
      await until('a request is in flight', () => stub.received('find').length === 1)
      expect(await health.isUp()).to.equal(true)
      for (const reason of await reasons) expect(reason).to.be.instanceOf(StoreUnavailable)
      expect(performance.now() - startMs).to.be.below(2_000)
      expect(stub.received('find')).to.have.lengthOf(1)
    } finally {
      await Promise.all([busy.close(), health.close()])
    }
  })

  it('is reported as unavailable once, with the reason, and as available once calls have succeeded for a second', async () => {
    const changes: unknown[] = []
    connection.onChange((...change) => void changes.push(change))
    await pets.find(1n)
    expect(changes).to.deep.equal([])

    findError = { ok: 0, code: 91, errmsg: 'The server is shutting down' }
    await Promise.all(Array.from({ length: 5 }, () => rejection(pets.find(1n))))
    expect(changes).to.deep.equal([[false, 'MongoDB is unavailable: The server is shutting down']])

    findError = undefined
    const startMs = performance.now()
    await until('it is available', async () => {
      // The driver takes a moment to find the server again.
      await pets.find(1n).catch(() => undefined)
      return changes.length > 1
    })
    expect(performance.now() - startMs).to.be.at.least(900)
    expect(changes.slice(1)).to.deep.equal([[true]])
  })

  it('that rejects an operation is not reported as unavailable', async () => {
    const changes: unknown[] = []
    connection.onChange((...change) => void changes.push(change))
    findError = { ok: 0, code: 2, errmsg: 'Bad value' }
    expect(await rejection(pets.find(1n))).to.not.be.instanceOf(StoreUnavailable)
    expect(changes).to.deep.equal([])
  })
})
