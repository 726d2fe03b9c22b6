import { expect } from 'chai'
import { expectError, readRateLimitFields, readQuotaHeaders } from '../support/responses.js'
import type { TestResponse } from '../support/api.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { RedisDatabase } from '../support/engines/redis-engine.js'
import { aRedisDatabase } from '../support/engines/redis-engine.js'
import type { Hit } from '../support/hammer.js'
import { countByStatus, Hammer } from '../support/hammer.js'
import type { StoredKey } from '../support/stored-key.js'
import { freeKeyWithTime, sharedSettings, startReplicas } from '../support/replicas.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, runPetstoreJson } from '../support/process.js'
import { until } from '../support/until.js'

const REPLICAS = 4
const SECONDS_FOR_A_TEST = 40
/** Refused so often within a second, a replica answers from memory. */
const EVERY_MS = 50

describe(`the next request on each of ${REPLICAS} replicas, in the middle of traffic,`, function () {
  this.timeout(90_000)
  let mongo: MongoDatabase
  let redis: RedisDatabase
  let settings: Settings
  let replicas: ServiceProcess[]

  before(async function () {
    mongo = await aMongoDatabase(this)
    redis = await aRedisDatabase(this)
    settings = sharedSettings(mongo, redis.url)
    replicas = await startReplicas(REPLICAS, { ...settings, TRUSTED_PROXY_HOPS: '1' })
  })

  after(async () => {
    await endProcesses()
    await redis?.release()
    await mongo?.drop()
  })

  /** Traffic with a key on every replica, for as long as `use` takes. */
  async function inTraffic({ key }: StoredKey, use: (traffic: Hammer) => Promise<void>): Promise<void> {
    const traffic = new Hammer(
      replicas.map(({ url }) => url),
      { key: () => key, clientsEach: 2, everyMs: EVERY_MS, headers: fromSomewhere },
    )
    try {
      await use(traffic)
    } finally {
      await traffic.stop()
    }
  }

  const onEach = ({ key }: StoredKey): Promise<TestResponse[]> =>
    Promise.all(replicas.map((replica) => replica.send('/v1/pets', { key, headers: fromSomewhere() })))

  /** Runs `petstore keys …`, and resolves to what it printed, the next answer of each replica, and the traffic before and after. */
  async function change<Printed>(traffic: Hammer, key: StoredKey, [verb, ...args]: readonly [string, ...string[]]) {
    const beganMs = performance.now()
    const printed = await runPetstoreJson<Printed>(['keys', verb, key.keyId, ...args], settings)
    const endedMs = performance.now()
    const next = await onEach(key)
    const since = (url?: string) => traffic.hits.filter((hit) => hit.beganMs > endedMs && (url === undefined || hit.url === url))
    await until('the traffic went on with each replica', () => replicas.every(({ url }) => since(url).length >= 10))
    const before = traffic.hits.filter((hit) => hit.endMs < beganMs)
    return { printed, next, before, later: since() }
  }

  it('after the plan was changed is decided by the new limits', async () => {
    const key = await freeKeyWithTime(settings, 0, { minute: 5_000, day: 50_000 })
    await inTraffic(key, async (traffic) => {
      await until('the key is served', () => traffic.count(200) >= 50)
      const { printed, next, before, later } = await change(traffic, key, ['plan', 'enterprise', '--minute', '6000', '--day', '60000'])
      expect(printed).to.include({ takesEffect: 'at once' })
      expect(policies(before)).to.deep.equal(['"minute";q=5000;w=60, "day";q=50000;w=86400'])
      expect(next.map(({ status }) => status)).to.deep.equal(new Array(REPLICAS).fill(200))
      expect(policies([...next, ...later])).to.deep.equal(['"minute";q=6000;w=60, "day";q=60000;w=86400'])
    })
  })

  it('after the plan of a key that is refused was raised is served, with what the new limit adds', async () => {
    const limits = { minute: 2_000, day: 50_000 }
    const key = await freeKeyWithTime(settings, SECONDS_FOR_A_TEST, limits)
    const urls = replicas.map(({ url }) => url)
    await new Hammer(urls, { key: () => key.key, clientsEach: 8, atMost: limits.minute }).done
    await inTraffic(key, async (traffic) => {
      await until('each replica refuses from memory', () => traffic.count(429) >= REPLICAS * 20)
      const { next, before, later } = await change(traffic, key, ['plan', 'free', '--minute', '4000', '--day', '50000'])
      expect(countByStatus(before)).to.have.all.keys('429')
      expect(next.map(({ status }) => status)).to.deep.equal(new Array(REPLICAS).fill(200))
      for (const answer of next) expect(readQuotaHeaders(answer)).to.have.property('limit', 4_000)
      expect(Math.max(...next.map((answer) => readQuotaHeaders(answer).remaining))).to.be.below(2_000)
      expect(countByStatus(later)).to.have.all.keys('200')
    })
  })

  it('after a ban was lifted is served, and before that not even on a better plan', async () => {
    const key = await freeKeyWithTime(settings, SECONDS_FOR_A_TEST)
    const areBanned = async () => (await onEach(key)).every(({ json }) => (json as { code?: string }).code === 'key_temporarily_banned')
    await inTraffic(key, async (traffic) => {
      await until('the key is banned', areBanned, 20_000)
      const raised = await change(traffic, key, ['plan', 'business'])
      for (const answer of raised.next) expectError(answer, 429, 'key_temporarily_banned')
      expect(countByStatus(raised.later)).to.have.all.keys('429')

      const { printed, next, later } = await change(traffic, key, ['unban'])
      expect(printed).to.include({ outcome: 'lifted' })
      expect(next.map(({ status }) => status)).to.deep.equal(new Array(REPLICAS).fill(200))
      for (const answer of next) expect(readRateLimitFields(answer)['minute']).to.include({ quota: 1_000 })
      expect(countByStatus(later)).to.have.all.keys('200')
    })
  })

  it('after the key was revoked is 401', async () => {
    const key = await freeKeyWithTime(settings, 0, { minute: 5_000, day: 50_000 })
    await inTraffic(key, async (traffic) => {
      await until('the key is served', () => traffic.count(200) >= 50)
      const { printed, next, before, later } = await change(traffic, key, ['revoke'])
      expect(printed).to.include({ takesEffect: 'at once', state: 'revoked' })
      expect(countByStatus(before)).to.have.all.keys('200')
      for (const answer of next) expectError(answer, 401, 'invalid_api_key')
      expect(countByStatus(later)).to.have.all.keys('401')
    })
  })
})

let addresses = 0

/** Each time another address, so that none fails too often. */
function fromSomewhere(): Record<string, string> {
  addresses += 1
  return { 'x-forwarded-for': `10.${addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}` }
}

function policies(answers: readonly Pick<Hit, 'headers'>[]): unknown[] {
  return [...new Set(answers.map(({ headers }) => headers['ratelimit-policy']))]
}
