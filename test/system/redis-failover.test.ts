import { expect } from 'chai'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { withRedis } from '../support/engines/redis-client.js'
import type { FaultOutcome } from '../support/fault-measurement.js'
import { itKeepsItsPromises, measureFault } from '../support/fault-measurement.js'
import { LoadMix } from '../support/load-mix.js'
import type { Settings } from '../support/process.js'
import { endProcesses } from '../support/process.js'
import { PlansForFaults } from '../support/plans-for-faults.js'
import { redisChanges, sharedSettings, startServices } from '../support/replicas.js'
import type { RedisSentinelSet } from '../support/redis-sentinel.js'
import { aRedisSentinelSet } from '../support/redis-sentinel.js'
import { until } from '../support/until.js'

const REPLICAS = 3

describe(`${REPLICAS} replicas under mixed load, with Redis behind three Sentinels,`, () => {
  let mongo: MongoDatabase
  let redis: RedisSentinelSet
  let settings: Settings
  let mix: LoadMix
  const plans = new PlansForFaults()

  before(async function () {
    this.timeout(90_000)
    mongo = await aMongoDatabase(this)
    redis = await aRedisSentinelSet(this, 2)
    settings = { ...sharedSettings(mongo, redis.url), ...plans.settings }
    mix = await LoadMix.start(await startServices(REPLICAS, settings), settings)
  })

  after(async () => {
    await mix?.stop()
    await endProcesses()
    await redis?.stop()
    await mongo?.drop()
    plans.remove()
  })

  for (const [what, begin, end] of [
    ['is killed', (primary: OwnEngine) => primary.kill(), (primary: OwnEngine) => primary.start()],
    ['is frozen', (primary: OwnEngine) => primary.freeze(), (primary: OwnEngine) => primary.unfreeze()],
  ] as const) {
    describe(`when the primary ${what} and a replica of Redis is promoted,`, () => {
      let outcome: FaultOutcome
      let primary: OwnEngine

      before(async function () {
        this.timeout(90_000)
        primary = await redis.findPrimary()
        await redis.untilReplicated()
        const isPromoted = async () => (await redis.findPrimary()) !== primary
        outcome = await measureFault(mix, settings, {
          what: `the primary ${what}`,
          part: 'redis',
          begin: () => begin(primary),
          isNoticed: isPromoted,
          isHealthy: areUsingRedis,
        })
        await end(primary)
      })

      itKeepsItsPromises(() => outcome)

      it('the promoted server decides, and the former primary becomes its replica', async function () {
        this.timeout(60_000)
        await redis.untilReplicating(primary)
        const promoted = await redis.findPrimary()
        const countScripts = () =>
          withRedis(promoted.url, async (client) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0))
        const before = await countScripts()
        await until('the new primary runs the script', async () => (await countScripts()) > before)
        expect(await areUsingRedis()).to.equal(true)
      })
    })
  }

  async function areUsingRedis(): Promise<boolean> {
    return (await Promise.all(mix.replicas.map(redisChanges))).every(({ down, up }) => up > down)
  }
})
