import { expect } from 'chai'
import { MongoIdempotencyStore } from '../../../src/adapters/mongo/mongo-idempotency-store.js'
import { IDEMPOTENCY_TTL_MS } from '../../../src/core/ports/idempotency-store.js'
import type { MongoDatabase } from '../../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../../support/engines/mongo-engine.js'
import { MongoData } from '../../support/mongo-data.js'
import { MovableClock } from '../../support/movable-clock.js'

const SCOPE = { keyId: 'key_one', idempotencyKey: 'an order of "ours"' }

describe('the idempotency records in MongoDB', () => {
  let database: MongoDatabase
  let data: MongoData
  let clock: MovableClock

  before(async function () {
    database = await aMongoDatabase(this)
    data = await MongoData.withIndexes(database.url)
  })

  beforeEach(async () => {
    await data.empty()
    clock = new MovableClock(Date.now())
  })

  afterEach(() => data.close())
  after(() => database?.drop())

  const claim = (petId: bigint) => new MongoIdempotencyStore(data.connect(), clock).claim(SCOPE, { fingerprint: `of ${petId}`, petId })
  const documents = () => data.connect().db.collection('idempotency', { useBigInt64: true }).find().toArray()

  it('expire 24 h after they were first claimed, by the date field of a TTL index', async () => {
    const endMs = clock.nowMs() + IDEMPOTENCY_TTL_MS
    await claim(7n)
    clock.advanceSeconds(60)
    await claim(8n)
    const [document, ...others] = await documents()
    expect(others).to.deep.equal([])
    expect(document?.['expiresAt']).to.deep.equal(new Date(endMs))
  })

  it('do not contain the idempotency key in plain text', async () => {
    await claim(7n)
    const text = (await documents()).map((document) => Object.values(document).join(' ')).join(' ')
    expect(text).to.not.include('ours')
  })

  it('that have expired are replaced, whether the TTL index has removed them or not', async () => {
    const nowMs = clock.nowMs()
    for (const isRemoved of [false, true]) {
      clock.moveTo(nowMs - 2 * IDEMPOTENCY_TTL_MS)
      await claim(1n)
      clock.moveTo(nowMs)
      if (isRemoved) await data.connect().db.collection('idempotency').deleteMany({})
      expect(await claim(2n)).to.deep.equal({ fingerprint: 'of 2', petId: 2n })
      const [document] = await documents()
      expect(document?.['expiresAt']).to.deep.equal(new Date(nowMs + IDEMPOTENCY_TTL_MS))
      await data.empty()
    }
  })

  it('that the TTL index removes at any moment never make a claim fail', async () => {
    const stores = Array.from({ length: 4 }, () => new MongoIdempotencyStore(data.connect(), clock))
    const records = data.connect().db.collection('idempotency')
    let isFinished = false
    const removing = (async () => {
      while (!isFinished) await records.deleteMany({ expiresAt: { $lte: new Date(clock.nowMs()) } })
    })()
    try {
      for (let round = 0; round < 100; round++) {
        const claims = stores.map((store, index) => store.claim(SCOPE, { fingerprint: `of ${index}`, petId: BigInt(round * 10 + index) }))
        const records = await Promise.all(claims)
        for (const record of records) expect(record, `round ${round}`).to.deep.equal(records[0])
        clock.advanceMs(IDEMPOTENCY_TTL_MS)
      }
    } finally {
      isFinished = true
      await removing
    }
  })
})
