import { expect } from 'chai'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica, RedisObserver, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { until } from '../../support/until.js'
import { countAdmitted, inParallel, inSequence } from '../../support/verdicts.js'

const FREE = someQuotaRules()
const BANNING = someQuotaRules({ limits: { minute: 2 }, ban: someBanRules({ graceMs: 0, minStrikes: 2, firstMs: 300_000 }) })
const KEY = 'key_one'

describe('what a replica decides while Redis is unavailable', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let observer: RedisObserver
  let clock: MovableClock
  let replica: RedisReplica

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
    clock = new MovableClock()
    replica = await aRedisReplica(redis.url, { clock, cachedMs: 0 })
    await untilUp(replica)
  })

  afterEach(async () => {
    await redis.start()
    await replica.close()
    observer.close()
  })

  after(() => redis?.stop())

  async function killRedis(): Promise<void> {
    await redis.kill()
    await untilUnavailable(replica)
  }

  async function restoreRedis(): Promise<void> {
    await redis.start()
    await untilUp(replica)
  }

  it('includes bans, which apply on every replica once Redis is available', async () => {
    await takeOne(replica.quotas, KEY, BANNING)
    await killRedis()
    const verdicts = await inSequence(5, () => {
      clock.advanceMs(1)
      return takeOne(replica.quotas, KEY, BANNING)
    })
    expect(verdicts.at(-1)?.kind).to.equal('banned')
    const bannedUntilMs = clock.nowMs() - 1 + 300_000
    await restoreRedis()
    expect(await replica.fallback.reportPendingUsage()).to.equal(0)
    const reported = await observer.hash(KEY)
    expect(reported).to.include({ banLevel: 1, minuteUsed: 2, dayUsed: 2 })
    expect(reported.bannedUntilMs).to.be.within(bannedUntilMs - 1, bannedUntilMs)
  })

  it('is not reported in windows that have ended', async () => {
    await takeOne(replica.quotas, KEY, FREE)
    await killRedis()
    await inParallel(5, () => takeOne(replica.quotas, KEY, FREE))
    clock.advanceMs(2 * 86_400_000)
    await restoreRedis()
    expect(await replica.fallback.reportPendingUsage()).to.equal(0)
    expect(await observer.hash(KEY)).to.deep.equal({})
  })

  it('is counted by key as unreported as long as Redis is unavailable', async () => {
    await killRedis()
    await inParallel(5, (index) => takeOne(replica.quotas, `key_${index % 3}`, FREE))
    expect(await replica.fallback.reportPendingUsage()).to.equal(3)
    await restoreRedis()
    expect(await replica.fallback.reportPendingUsage()).to.equal(0)
    expect(await observer.used('key_0')).to.deep.equal([2, 2])
  })

  it('is reported once by reports at the same time', async () => {
    await killRedis()
    await inParallel(5, () => takeOne(replica.quotas, KEY, FREE))
    await restoreRedis()
    await inParallel(3, () => replica.fallback.reportPendingUsage())
    expect(await observer.used(KEY)).to.deep.equal([5, 5])
  })

  for (const [what, stepMs] of [
    ['back by an hour', -3_600_000],
    ['forward by a day', 86_400_000],
  ] as const) {
    it(`does not depend on the Unix time of the replica, which steps ${what} in the outage`, async () => {
      const localClock = new MovableClock()
      const stepping = await aRedisReplica(redis.url, { localClock })
      try {
        await untilUp(stepping)
        const before = await inParallel(40, () => takeOne(stepping.quotas, KEY, FREE))
        await redis.kill()
        await untilUnavailable(stepping)
        localClock.step(stepMs)
        const outage = await inParallel(60, () => takeOne(stepping.quotas, KEY, FREE))
        const [day] = [...before, ...outage].map(({ quota }) => quota.day.resetSeconds)
        expect(new Set([...before, ...outage].map(({ quota }) => quota.day.resetSeconds))).to.deep.equal(new Set([day]))
        expect(countAdmitted([...before, ...outage])).to.equal(60)
      } finally {
        await stepping.close()
      }
    })
  }

  it('includes refunds of requests that Redis has charged', async () => {
    const [first] = await inSequence(3, () => takeOne(replica.quotas, KEY, FREE))
    await killRedis()
    if (first && 'charge' in first) await replica.quotas.refund(KEY, first.charge, FREE)
    await restoreRedis()
    await until('the refund is reported', async () => (await observer.used(KEY))[0] === 2)
  })
})
