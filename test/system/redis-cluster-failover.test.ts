import { expect } from 'chai'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { countMostGranted, expectCompleteResponse, findSlowestMs } from '../support/load-checks.js'
import { countByStatus, LoadGenerator } from '../support/load-generator.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses } from '../support/process.js'
import type { RedisClusterWithReplicas } from '../support/redis-cluster.js'
import { aRedisClusterWithReplicas } from '../support/redis-cluster.js'
import { freeKeyWithTime, sharedSettings, startServices, toUsage } from '../support/replicas.js'
import { readRateLimitFields } from '../support/responses.js'
import type { StoredKey } from '../support/stored-key.js'
import { issueStoredKeys } from '../support/stored-key.js'
import { until } from '../support/until.js'

const REPLICAS = 2
const KEYS = 24
const FREE_LIMIT = 60
const SECONDS_FOR_A_FAILOVER = 25

describe(`${REPLICAS} replicas with a Redis Cluster, when a node is killed and its replica takes over,`, () => {
  let mongo: MongoDatabase
  let cluster: RedisClusterWithReplicas
  let replicas: ServiceProcess[]
  let settings: Settings
  let failed: { readonly key: StoredKey; readonly load: LoadGenerator; readonly counted: number }
  let others: readonly { readonly key: StoredKey; readonly load: LoadGenerator; readonly counted: number }[]
  let hot: { readonly key: StoredKey; readonly load: LoadGenerator }
  const loads: LoadGenerator[] = []

  before(async function () {
    this.timeout(120_000)
    mongo = await aMongoDatabase(this)
    cluster = await aRedisClusterWithReplicas(this)
    settings = sharedSettings(mongo, cluster.url)
    replicas = await startServices(REPLICAS, settings)
    const [killed, ...running] = cluster.nodes
    const [promoted] = cluster.replicas
    if (!killed || !promoted) throw new Error('No node')
    const newKeys = Array.from(
      { length: KEYS },
      () => ({ owner: 'tests', plan: 'enterprise', limits: { minute: 1_000_000, day: 1_000_000 } }) as const,
    )
    const keys = await issueStoredKeys(mongo.url, newKeys)
    for (const { key } of keys) await replicas[0]?.send('/v1/pets', { key })
    const keysOf = new Map(await Promise.all(cluster.nodes.map(async (node) => [node, await findKey(node, keys)] as const)))
    const startLoad = (key: StoredKey | undefined, everyMs: number) => {
      if (!key) throw new Error('A node has no key')
      const load = new LoadGenerator(
        replicas.map(({ url }) => url),
        { key: () => key.key, clientsEach: 1, everyMs },
      )
      loads.push(load)
      return { key, load }
    }
    const loadOfFailed = startLoad(keysOf.get(killed), 20)
    const otherLoads = running.map((node) => startLoad(keysOf.get(node), 20))
    hot = startLoad(await findFreeKey(killed), 60)
    await until('the load has begun', () => loads.every((load) => load.count(200) >= 15))

    const startMs = performance.now()
    await killed.kill()
    const isPrimary = async () => String(await cluster.send(promoted, 'ROLE')).startsWith('master')
    await until('the replica has taken over', isPrimary, 15_000)
    const takenOverMs = performance.now()
    const before = await countScripts(promoted)
    await until('the replica that took over decides', async () => (await countScripts(promoted)) >= before + 20, 15_000)
    const decidedMs = performance.now()
    const servedBefore = loadOfFailed.load.count(200)
    await until('the load continues', () => loadOfFailed.load.count(200) >= servedBefore + 50)
    await Promise.all(loads.map((load) => load.stop()))

    const withCount = async <Load extends { readonly key: StoredKey }>(each: Load) => ({
      ...each,
      counted: (await toUsage(each.key.keyId, settings)).day.used,
    })
    failed = await withCount(loadOfFailed)
    others = await Promise.all(otherLoads.map(withCount))
    const counts = (each: typeof failed) => `counted ${each.counted} of ${each.load.count(200) + 1}`
    console.error(
      [
        `Figures: a node of the cluster is killed: its replica takes over after ${Math.round(takenOverMs - startMs)} ms and decides ${Math.round(decidedMs - takenOverMs)} ms after that`,
        `granted ${countMostGranted(hot.load.hits, hot.key.keyId)} of at most ${bound()}`,
        `slowest response ${findSlowestMs(loads.flatMap(({ hits }) => hits))} ms`,
        `key of this node: ${counts(failed)}`,
        `keys of other nodes: ${others.map(counts).join(', ')}`,
      ].join('; '),
    )
  })

  after(async () => {
    await Promise.all(loads.map((load) => load.stop()))
    await endProcesses()
    await cluster?.stop()
    await mongo?.drop()
  })

  it('there are only complete responses with 200, and 429 for a key without quota, each within a second', () => {
    const hits = loads.flatMap((load) => load.hits)
    for (const hit of hits) expectCompleteResponse(hit)
    for (const { load } of [failed, ...others]) expect(countByStatus(load.hits)).to.have.all.keys('200')
    expect(countByStatus(hot.load.hits)).to.have.all.keys('200', '429')
    expect(findSlowestMs(hits)).to.be.below(1_000)
  })

  it('keys of other nodes are decided by Redis all the time: each response reports another number of remaining requests', () => {
    for (const { load, counted } of others) {
      expect(counted).to.equal(load.count(200) + 1)
      const remaining = load.hits.map((hit) => readRateLimitFields(hit)['day']?.remaining)
      expect(new Set(remaining)).to.have.property('size', load.hits.length)
    }
  })

  it('keys of the node get no more requests per minute than documented, and are counted once except for those in flight', () => {
    expect(countMostGranted(hot.load.hits, hot.key.keyId)).to.be.within(1, bound())
    const granted = failed.load.count(200) + 1
    expect(failed.counted).to.be.within(granted - REPLICAS, granted + REPLICAS)
  })

  /** The replicas may also grant their shares and what was in flight. */
  function bound(): number {
    return 2 * FREE_LIMIT + REPLICAS + REPLICAS
  }

  async function findKey(node: OwnEngine, keys: readonly StoredKey[]): Promise<StoredKey | undefined> {
    for (const key of keys) if (await isOnNode(node, key)) return key
    return undefined
  }

  async function findFreeKey(node: OwnEngine): Promise<StoredKey> {
    const key = await freeKeyWithTime(settings, SECONDS_FOR_A_FAILOVER)
    await replicas[0]?.send('/v1/pets', { key: key.key })
    return (await isOnNode(node, key)) ? key : findFreeKey(node)
  }

  async function isOnNode(node: OwnEngine, { keyId }: StoredKey): Promise<boolean> {
    return ((await cluster.send(node, 'KEYS', `*${keyId}*`)) as string[]).length > 0
  }

  async function countScripts(node: OwnEngine): Promise<number> {
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(await cluster.send(node, 'INFO', 'commandstats')))?.[1] ?? 0)
  }
})
