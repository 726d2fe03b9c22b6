import { expect } from 'chai'
import { useDatabases } from '../support/engines/use-databases.js'
import { countByStatus, LoadGenerator } from '../support/load-generator.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, runPetstoreJson } from '../support/process.js'
import { freeKeyWithTime, sharedSettings, startReplicas } from '../support/replicas.js'
import { expectError } from '../support/responses.js'
import { until } from '../support/until.js'

const REPLICAS = 2
const SECRET_LENGTH = 45

interface PrintedKey {
  readonly key: string
  readonly takesEffect: string
  readonly oldSecret?: { readonly expiresAt: string; readonly lastUsedAt?: string }
}

interface PrintedChange {
  readonly action: string
  readonly by: string
}

describe(`a rotation under load on ${REPLICAS} replicas`, function () {
  this.timeout(90_000)
  after(endProcesses)
  const databases = useDatabases()
  let settings: Settings
  let replicas: ServiceProcess[]

  before(async () => {
    settings = sharedSettings(databases.mongo, databases.redis.url)
    replicas = await startReplicas(REPLICAS, settings)
  })

  const keys = <Printed>(...args: string[]) => runPetstoreJson<Printed>(['keys', ...args], settings)

  const onEach = (key: string) => Promise.all(replicas.map((replica) => replica.send('/v1/pets', { key })))

  function startLoad(key: () => string): LoadGenerator {
    const urls = replicas.map(({ url }) => url)
    return new LoadGenerator(urls, { key, clientsEach: 2, everyMs: 50 })
  }

  async function countOldSecretRequests(): Promise<number> {
    const texts = await Promise.all(replicas.map(async ({ adminUrl }) => (await fetch(`${adminUrl}/metrics`)).text()))
    return texts.reduce((sum, text) => sum + Number(/^petstore_old_secret_requests_total (\d+)$/m.exec(text)?.[1]), 0)
  }

  it('fails no request while clients move to the new secret, and the next request with the old one gets 401 after it is finished', async () => {
    const { key: oldSecret, keyId } = await freeKeyWithTime(settings, 0, { minute: 100_000, day: 1_000_000 })
    let current = oldSecret
    const load = startLoad(() => current)
    const continues = () => {
      const { length } = load.hits
      return until('the load continues at each replica', () =>
        replicas.every(({ url }) => load.hits.slice(length).filter((hit) => hit.url === url).length >= 20),
      )
    }
    try {
      await continues()
      const rotated = await keys<PrintedKey>('rotate', keyId, '--grace', '1h', '--by', 'alice')
      const rotatedMs = performance.now()
      expect(rotated.key).to.have.lengthOf(SECRET_LENGTH).and.not.equal(oldSecret)
      expect(rotated.takesEffect).to.equal('at once')
      await continues()
      const switchedMs = performance.now()
      current = rotated.key
      await continues()

      const end = new Date(rotated.oldSecret?.expiresAt ?? '').toUTCString()
      const hits = load.hits.filter(({ startMs }) => startMs > rotatedMs)
      for (const { startMs, headers } of hits) {
        if (startMs < switchedMs) expect(headers).to.include({ 'x-api-key-expires': end })
      }
      const lastHits = load.hits.slice(-10)
      for (const { headers } of lastHits) expect(headers).not.to.have.property('x-api-key-expires')
      expect(await countOldSecretRequests()).to.be.at.least(40)
      expect((await keys<PrintedKey>('show', keyId)).oldSecret).to.have.property('lastUsedAt')

      for (const response of await onEach(oldSecret))
        expect(response).to.have.nested.include({ status: 200, 'headers.x-api-key-expires': end })
      await keys('rotate', keyId, '--finish', '--by', 'bob')
      for (const response of await onEach(oldSecret)) expectError(response, 401, 'invalid_api_key')
      await continues()
    } finally {
      await load.stop()
    }
    expect(countByStatus(load.hits), 'no request failed').to.deep.equal({ 200: load.hits.length })

    const changes = await keys<PrintedChange[]>('history', keyId)
    expect(changes.map(({ action, by }) => [action, by])).to.deep.equal([
      ['issued', 'tests'],
      ['rotated', 'alice'],
      ['rotation-finished', 'bob'],
    ])
  })

  it('without a grace period rejects the next request with the old secret on each replica, and none with the new one', async () => {
    const { key: oldSecret, keyId } = await freeKeyWithTime(settings, 0)
    for (const response of await onEach(oldSecret)) expect(response).to.have.property('status', 200)
    const rotated = await keys<PrintedKey>('rotate', keyId, '--grace', '0')
    for (const response of await onEach(oldSecret)) expectError(response, 401, 'invalid_api_key')
    for (const response of await onEach(rotated.key)) expect(response).to.have.property('status', 200)
  })
})
