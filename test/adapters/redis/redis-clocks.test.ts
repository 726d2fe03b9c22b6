import { expect } from 'chai'
import { SharedClock } from '../../../src/adapters/redis/shared-clock.js'
import type { Clock } from '../../../src/core/ports/clock.js'
import type { Quota } from '../../../src/core/quota.js'
import { getMinutePhaseSeconds, getWindowNumber, getWindowResetSeconds } from '../../../src/core/window.js'
import { someQuotaRules } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { inParallel } from '../../support/verdicts.js'

const AMPLE = someQuotaRules({ limits: { minute: 100_000, day: 1_000_000 } })
const SKEW_MS = 500
/** The longest that a response takes on a busy machine. */
const LATE_MS = 150

describe('replicas whose clocks differ by a second', function () {
  this.timeout(30_000)
  let redis: OwnEngine
  let replicas: RedisReplica[]

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    replicas = await Promise.all([SKEW_MS, -SKEW_MS].map((skewMs) => aRedisReplica(redis.url, { localClock: aClockWithOffset(skewMs) })))
    await Promise.all(replicas.map((replica) => untilUp(replica)))
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all(replicas.map((replica) => replica.close()))
  })

  after(() => redis?.stop())

  it('return one reset for each minute and day of each key before, during and after an outage', async () => {
    const seen: { keyId: string; quota: Quota; isShared: boolean }[] = []
    // Keys whose minutes end during the test, one after the other.
    const keyIds = findKeysByMinuteEnd(8)
    const sample = async () => {
      await inParallel(keyIds.length, async (index) => {
        const keyId = keyIds[index] ?? ''
        for (const { quotas, connection } of replicas) {
          const { quota } = await takeOne(quotas, keyId, AMPLE)
          seen.push({ keyId, quota, isShared: connection.breaker.isUp })
        }
      })
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    const sampleFor = async (ms: number) => {
      const endMs = performance.now() + ms
      while (performance.now() < endMs) await sample()
    }
    await sampleFor(2_000)
    await redis.kill()
    await Promise.all(replicas.map((replica) => untilUnavailable(replica)))
    await sampleFor(4_000)
    await redis.start()
    await Promise.all(replicas.map((replica) => untilUp(replica)))
    await sampleFor(1_000)

    const resets = new Map<string, Set<number>>()
    for (const { keyId, quota } of seen) {
      const at = { nowMs: quota.nowMs, phaseSeconds: getMinutePhaseSeconds(keyId) }
      for (const name of ['minute', 'day'] as const) {
        const window = `${keyId} ${name} ${getWindowNumber(name, at)}`
        resets.set(window, (resets.get(window) ?? new Set()).add(quota[name].resetSeconds))
        expect(quota[name].resetSeconds, window).to.equal(getWindowResetSeconds(name, getWindowNumber(name, at), at))
      }
    }
    const alone = seen.filter(({ isShared }) => !isShared)
    expect([...resets].filter(([, values]) => values.size !== 1)).to.deep.equal([])
    expect(resets.size).to.be.above(keyIds.length * 2 + 3)
    expect(alone.length).to.be.above(200)
    console.error(`      ${seen.length} responses (${alone.length} without Redis), ${resets.size} windows, one reset each`)
  })

  it('decide by an estimate of the clock of Redis in an outage, which is never behind and is ahead by at most the time of a response', async () => {
    await inParallel(20, (index) => takeOne(replicas[index % 2]?.quotas ?? failMissingReplica(), 'key_one', AMPLE))
    await redis.kill()
    await Promise.all(replicas.map((replica) => untilUnavailable(replica)))
    for (const { quotas } of replicas) {
      const before = Date.now()
      const { quota } = await takeOne(quotas, 'key_one', AMPLE)
      expect(quota.nowMs).to.be.within(before - 1, Date.now() + LATE_MS)
    }
  })

  it('decide by their own clock until Redis has responded once', async () => {
    const [ahead] = await Promise.all(
      [SKEW_MS].map((skewMs) => redis.kill().then(() => aRedisReplica(redis.url, { localClock: aClockWithOffset(skewMs) }))),
    )
    if (!ahead) throw new Error('The replica does not exist')
    replicas.push(ahead)
    const before = Date.now()
    expect((await takeOne(ahead.quotas, 'key_one', AMPLE)).quota.nowMs).to.be.within(before + SKEW_MS, Date.now() + SKEW_MS)
  })
})

describe('the shared clock', () => {
  it('is the local clock until it has observed the other clock, and then continues from the last observation', () => {
    const local = new MovableClock(1_000_000)
    const shared = new SharedClock(local)
    expect(shared.nowMs()).to.equal(1_000_000)
    shared.observe(1_000_740, 1_000_000)
    expect(shared.nowMs()).to.equal(1_000_740)
    local.advanceMs(60)
    expect(shared.nowMs()).to.equal(1_000_800)
    shared.observe(1_000_300, 1_000_060)
    expect(shared.nowMs()).to.equal(1_000_300)
  })

  it('is never behind the other clock, and ahead by the time that the command took to arrive', () => {
    const local = new MovableClock(1_000_000)
    const shared = new SharedClock(local)
    const sentAtMs = local.nowMs()
    // 30 ms to the server, 50 ms back; its clock is 500 ms ahead.
    const sharedNowMs = 1_000_030 + 500
    local.advanceMs(80)
    shared.observe(sharedNowMs, sentAtMs)
    expect(shared.nowMs() - (local.nowMs() + 500)).to.equal(30)
  })
})

function aClockWithOffset(byMs: number): Clock {
  return { nowMs: () => Date.now() + byMs, monotonicMs: () => performance.now() }
}

/** Returns one key for each of the next seconds. The minute of the key ends at that second. */
function findKeysByMinuteEnd(seconds: number): string[] {
  const nowSeconds = Math.floor(Date.now() / 1000)
  return Array.from({ length: seconds }, (_, index) => {
    for (let number = 0; ; number++) {
      if ((nowSeconds + 1 + index + getMinutePhaseSeconds(`key_${number}`)) % 60 === 0) return `key_${number}`
    }
  })
}

function failMissingReplica(): never {
  throw new Error('The replica does not exist')
}
