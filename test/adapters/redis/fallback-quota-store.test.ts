import { expect } from 'chai'
import { FallbackQuotaStore } from '../../../src/adapters/redis/fallback-quota-store.js'
import { RedisUnavailable } from '../../../src/adapters/redis/redis-circuit-breaker.js'
import type { RedisQuotaStore } from '../../../src/adapters/redis/redis-quota-store.js'
import { someQuotaRules } from '../../support/builders.js'
import { heapUsedAfterCollection } from '../../support/heap.js'
import { MovableClock } from '../../support/movable-clock.js'
import { takeOne } from '../../support/take-one.js'
import { until } from '../../support/until.js'
import { inSequence } from '../../support/verdicts.js'

const KEYS = 20_000
const DAY_MS = 86_400_000

describe('the decisions of a replica in an outage', () => {
  it('are kept in memory only until Redis is available again after their windows have ended, and are not reported then', async () => {
    const redis = new FakeRedis()
    const quotas = new FallbackQuotaStore(redis as unknown as RedisQuotaStore, { count: 1 }, redis.clock)
    const beforeBytes = heapUsedAfterCollection()
    await inSequence(KEYS, (index) => takeOne(quotas, `key_${index}`, someQuotaRules()))
    redis.clock.advanceMs(DAY_MS)
    redis.restore()
    expect(await quotas.reportPendingUsage()).to.equal(0)
    expect(redis.reported).to.deep.equal([])
    expect(heapUsedAfterCollection() - beforeBytes).to.be.below(KEYS * 100)
    expect((await takeOne(quotas, 'key_0', someQuotaRules())).kind).to.equal('admitted')
  })

  it('are reported for the keys of a shard when Redis is available for that shard, although it is not for another', async () => {
    const redis = new FakeRedis()
    const quotas = new FallbackQuotaStore(redis as unknown as RedisQuotaStore, { count: 1 }, redis.clock)
    for (const keyId of ['key_a', 'key_b']) await takeOne(quotas, keyId, someQuotaRules())
    redis.restore((keyId) => keyId === 'key_a')
    await until('the first key is reported', () => redis.reported.length > 0)
    expect(await quotas.reportPendingUsage()).to.equal(1)
    expect(redis.reported).to.deep.equal(['key_a'])
    redis.restore()
    await until('the second key is reported', () => redis.reported.length > 1)
    expect(redis.reported).to.deep.equal(['key_a', 'key_b'])
  })
})

/** Unavailable until `restore`, and afterwards only for decisions. */
class FakeRedis {
  readonly clock = new MovableClock()
  #isUpFor: (keyId: string) => boolean = () => false
  readonly #listeners: (() => void)[] = []
  readonly reported: string[] = []

  isUp(keyId: string): boolean {
    return this.#isUpFor(keyId)
  }

  onUp(listener: () => void): void {
    this.#listeners.push(listener)
  }

  restore(isUpFor: (keyId: string) => boolean = () => true): void {
    this.#isUpFor = isUpFor
    for (const listener of this.#listeners) listener()
  }

  async take(): Promise<never> {
    throw new RedisUnavailable('Redis is unavailable', { maybeExecuted: false })
  }

  async reconcile(keyId: string): Promise<void> {
    this.reported.push(keyId)
  }

  lastState(): undefined {
    return undefined
  }

  now() {
    return { nowMs: this.clock.nowMs(), phaseSeconds: 0 }
  }
}
