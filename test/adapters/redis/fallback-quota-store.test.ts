import { expect } from 'chai'
import { FallbackQuotaStore } from '../../../src/adapters/redis/fallback-quota-store.js'
import { RedisUnavailable } from '../../../src/adapters/redis/redis-circuit-breaker.js'
import type { RedisQuotaStore } from '../../../src/adapters/redis/redis-quota-store.js'
import { someQuotaRules } from '../../support/builders.js'
import { heapUsedAfterCollection } from '../../support/heap.js'
import { MovableClock } from '../../support/movable-clock.js'
import { takeOne } from '../../support/take-one.js'
import { inSequence } from '../../support/verdicts.js'

const KEYS = 20_000
const DAY_MS = 86_400_000

describe('the decisions of a replica in an outage', () => {
  it('are kept in memory only until Redis is available again after their windows have ended', async () => {
    const redis = new FakeRedis()
    const quotas = new FallbackQuotaStore(redis as unknown as RedisQuotaStore, 1)
    const beforeBytes = heapUsedAfterCollection()
    await inSequence(KEYS, (index) => takeOne(quotas, `key_${index}`, someQuotaRules()))
    redis.clock.advanceMs(DAY_MS)
    redis.restore()
    await redis.reconciled
    expect(heapUsedAfterCollection() - beforeBytes).to.be.below(KEYS * 100)
    expect((await takeOne(quotas, 'key_0', someQuotaRules())).kind).to.equal('admitted')
  })
})

/** Unavailable until `restore`, and afterwards only for decisions. */
class FakeRedis {
  readonly clock = new MovableClock()
  isUp = false
  readonly #listeners: ((isUp: boolean) => void)[] = []
  #count = 0
  #resolve: () => void = () => {}
  readonly reconciled = new Promise<void>((resolve) => (this.#resolve = resolve))

  onChange(listener: (isUp: boolean) => void): void {
    this.#listeners.push(listener)
  }

  restore(): void {
    this.isUp = true
    for (const listener of this.#listeners) listener(true)
  }

  async take(): Promise<never> {
    throw new RedisUnavailable('Redis is unavailable', { maybeExecuted: false })
  }

  async reconcile(): Promise<void> {
    this.#count += 1
    if (this.#count === KEYS) this.#resolve()
  }

  lastState(): undefined {
    return undefined
  }

  now() {
    return { nowMs: this.clock.nowMs(), phaseSeconds: 0 }
  }
}
