import { expect } from 'chai'
import { expectError, readRateLimitFields, readQuotaHeaders } from '../support/responses.js'
import type { TestResponse } from '../support/api.js'
import { useDatabases } from '../support/engines/use-databases.js'
import type { Hit } from '../support/load-generator.js'
import { countByStatus, LoadGenerator } from '../support/load-generator.js'
import type { StoredKey } from '../support/stored-key.js'
import { freeKeyWithTime, sharedSettings, startReplicas } from '../support/replicas.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, runPetstoreJson } from '../support/process.js'
import { until } from '../support/until.js'

const REPLICAS = 4
const SECONDS_FOR_A_TEST = 40
/** At this request rate, a replica rejects an exhausted key from its cache. */
const EVERY_MS = 50
/** A replica rejects a key from its cache for at most one second. The rest is a margin for a busy machine. */
const CACHED_MS = 1_500

describe(`on each of ${REPLICAS} replicas under load,`, function () {
  this.timeout(90_000)
  after(endProcesses)
  const databases = useDatabases()
  let settings: Settings
  let replicas: ServiceProcess[]

  before(async () => {
    settings = sharedSettings(databases.mongo, databases.redis.url)
    replicas = await startReplicas(REPLICAS, { ...settings, TRUSTED_PROXY_HOPS: '1' })
  })

  /** Sends requests with a key to every replica while `use` runs. */
  async function underLoad({ key }: StoredKey, use: (load: LoadGenerator) => Promise<void>): Promise<void> {
    const load = new LoadGenerator(
      replicas.map(({ url }) => url),
      { key: () => key, clientsEach: 2, everyMs: EVERY_MS, headers: fromAnotherAddress },
    )
    try {
      await use(load)
    } finally {
      await load.stop()
    }
  }

  const onEach = ({ key }: StoredKey): Promise<TestResponse[]> =>
    Promise.all(replicas.map((replica) => replica.send('/v1/pets', { key, headers: fromAnotherAddress() })))

  /**
   * Runs `petstore keys …`. Resolves to its output, the next response of each replica, and the load before and after. If the key is
   * rejected from caches, `next` and `later` begin once each replica has admitted it.
   */
  async function change<Printed>(
    load: LoadGenerator,
    key: StoredKey,
    [verb, ...args]: readonly [string, ...string[]],
    { isCached = false } = {},
  ) {
    const startMs = performance.now()
    const printed = await runPetstoreJson<Printed>(['keys', verb, key.keyId, ...args], settings)
    if (isCached)
      await until('each replica admits the key', async () => (await onEach(key)).every(({ status }) => status === 200), CACHED_MS)
    const endedMs = performance.now()
    const next = await onEach(key)
    const since = (url?: string) => load.hits.filter((hit) => hit.startMs > endedMs && (url === undefined || hit.url === url))
    await until('the load continues at each replica', () => replicas.every(({ url }) => since(url).length >= 10))
    const before = load.hits.filter((hit) => hit.endMs < startMs)
    return { printed, next, before, later: since() }
  }

  it('the next request after a plan change is decided by the new limits', async () => {
    const key = await freeKeyWithTime(settings, 0, { minute: 5_000, day: 50_000 })
    await underLoad(key, async (load) => {
      await until('the key is admitted', () => load.count(200) >= 50)
      const { printed, next, before, later } = await change(load, key, ['plan', 'enterprise', '--minute', '6000', '--day', '60000'])
      expect(printed).to.include({ takesEffect: 'at once' })
      expect(policies(before)).to.deep.equal(['"minute";q=5000;w=60, "day";q=50000;w=86400'])
      expect(next.map(({ status }) => status)).to.deep.equal(new Array(REPLICAS).fill(200))
      expect(policies([...next, ...later])).to.deep.equal(['"minute";q=6000;w=60, "day";q=60000;w=86400'])
    })
  })

  it('an exhausted key is admitted within a second after its limit is raised, and its earlier usage still counts', async () => {
    const limits = { minute: 2_000, day: 50_000 }
    const key = await freeKeyWithTime(settings, SECONDS_FOR_A_TEST, limits)
    const urls = replicas.map(({ url }) => url)
    await new LoadGenerator(urls, { key: () => key.key, clientsEach: 8, atMost: limits.minute }).done
    await underLoad(key, async (load) => {
      await until('each replica rejects from its cache', () => load.count(429) >= REPLICAS * 20)
      const { next, before, later } = await change(load, key, ['plan', 'free', '--minute', '4000', '--day', '50000'], { isCached: true })
      expect(countByStatus(before)).to.have.all.keys('429')
      expect(next.map(({ status }) => status)).to.deep.equal(new Array(REPLICAS).fill(200))
      for (const response of next) expect(readQuotaHeaders(response)).to.have.property('limit', 4_000)
      expect(Math.max(...next.map((response) => readQuotaHeaders(response).remaining))).to.be.below(2_000)
      expect(countByStatus(later)).to.have.all.keys('200')
    })
  })

  it('a banned key is admitted within a second after its ban is lifted, and stays banned if only its plan changes', async () => {
    const key = await freeKeyWithTime(settings, SECONDS_FOR_A_TEST)
    const areBanned = async () => (await onEach(key)).every(({ json }) => (json as { code?: string }).code === 'key_temporarily_banned')
    await underLoad(key, async (load) => {
      await until('the key is banned', areBanned, 20_000)
      const raised = await change(load, key, ['plan', 'business'])
      for (const response of raised.next) expectError(response, 429, 'key_temporarily_banned')
      expect(countByStatus(raised.later)).to.have.all.keys('429')

      const { printed, next, later } = await change(load, key, ['unban'], { isCached: true })
      expect(printed).to.include({ outcome: 'lifted' })
      expect(next.map(({ status }) => status)).to.deep.equal(new Array(REPLICAS).fill(200))
      for (const response of next) expect(readRateLimitFields(response)['minute']).to.include({ quota: 1_000 })
      expect(countByStatus(later)).to.have.all.keys('200')
    })
  })

  it('the next request after the key is revoked gets 401', async () => {
    const key = await freeKeyWithTime(settings, 0, { minute: 5_000, day: 50_000 })
    await underLoad(key, async (load) => {
      await until('the key is admitted', () => load.count(200) >= 50)
      const { printed, next, before, later } = await change(load, key, ['revoke'])
      expect(printed).to.include({ takesEffect: 'at once', state: 'revoked' })
      expect(countByStatus(before)).to.have.all.keys('200')
      for (const response of next) expectError(response, 401, 'invalid_api_key')
      expect(countByStatus(later)).to.have.all.keys('401')
    })
  })
})

let addresses = 0

/** Returns a different IP address each time, so that none reaches its failure limit. */
function fromAnotherAddress(): Record<string, string> {
  addresses += 1
  return { 'x-forwarded-for': `10.${addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}` }
}

function policies(responses: readonly Pick<Hit, 'headers'>[]): unknown[] {
  return [...new Set(responses.map(({ headers }) => headers['ratelimit-policy']))]
}
