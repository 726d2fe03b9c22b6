import { expect } from 'chai'
import { MongoApiKeyStore } from '../../../src/adapters/mongo/mongo-api-key-store.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import { anApiKey, anIssue } from '../../support/builders.js'
import { rejection } from '../../contracts/rejection.js'
import { anOwnMongo } from '../../support/engines/mongo-engine.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { MongoData } from '../../support/mongo-data.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { FaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { collectUnhandledRejections } from '../../support/unhandled-rejections.js'

const KEY = anApiKey()

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
