import { expect } from 'chai'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import { freePort } from '../../support/engines/free-port.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica, RedisReplicaOptions } from '../../support/redis-replica.js'
import { aRedisReplica, RedisObserver, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import type { FaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { until } from '../../support/until.js'
import { countAdmitted, requireCharge, inSequence, inParallel } from '../../support/verdicts.js'

const FREE = someQuotaRules()
const KEY = 'key_one'

describe('the quotas of a replica while Redis is unavailable', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let proxy: FaultInjectionProxy
  let observer: RedisObserver
  let clock: MovableClock
  const open: RedisReplica[] = []

  before(async function () {
    redis = await anOwnRedis(this, ['--appendonly', 'yes', '--appendfsync', 'always'])
  })

  beforeEach(async () => {
    clock = new MovableClock()
    proxy = await startFaultInjectionProxy(redis.url)
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all(open.splice(0).map((replica) => replica.close()))
    observer.close()
    await proxy.close()
  })

  after(() => redis?.stop())

  async function aReplica(options: RedisReplicaOptions = {}, url = `redis://${proxy.address}`): Promise<RedisReplica> {
    const replica = await aRedisReplica(url, { clock, ...options })
    open.push(replica)
    if (url === `redis://${proxy.address}`) await untilUp(replica)
    return replica
  }

  /** Kills Redis. Resolves when the circuit breaker of each replica is open. */
  async function killRedis(...replicas: RedisReplica[]): Promise<void> {
    await redis.kill()
    for (const replica of replicas) await untilUnavailable(replica)
  }

  async function restoreRedis(...replicas: RedisReplica[]): Promise<void> {
    await redis.start()
    for (const replica of replicas) await untilUp(replica)
  }

  const take = ({ quotas }: RedisReplica, keyId = KEY, rules = FREE) => takeOne(quotas, keyId, rules)
  const untilUsed = (minute: number, day: number, keyId = KEY) =>
    until(`${minute} of the minute and ${day} of the day are used`, async () => {
      const [usedOfMinute, usedOfDay] = await observer.used(keyId)
      return usedOfMinute === minute && usedOfDay === day
    })

  describe('the share that it grants', () => {
    it('of an unknown key is its part of the limits, rounded up, in both windows', async () => {
      const replica = await aReplica({ replicas: 7 }, `redis://127.0.0.1:${await freePort()}`)
      expect(countAdmitted(await inParallel(200, () => take(replica)))).to.equal(9)
      let admitted = 9
      for (let minute = 0; minute < 40; minute++) {
        clock.advanceSeconds(60)
        admitted += countAdmitted(await inParallel(70, () => take(replica)))
      }
      expect(admitted).to.equal(143)
    })

    it('of a known key is its part of the requests that remained for all replicas, in both windows', async () => {
      const [first, second] = [await aReplica({ replicas: 3 }), await aReplica({ replicas: 3 })]
      const rules = someQuotaRules({ limits: { minute: 60, day: 100 } })
      await inSequence(50, (index) => take(index % 2 ? first : second, KEY, rules))
      await killRedis(first, second)
      // Of 10 and 11, by the last response to each replica.
      expect(countAdmitted(await inParallel(100, () => take(first, KEY, rules)))).to.equal(4)
      expect(countAdmitted(await inParallel(100, () => take(second, KEY, rules)))).to.equal(4)
      clock.advanceSeconds(60)
      // ceil(50 / 3) of the day, less 4. The share of the minute is 20 again.
      expect(countAdmitted(await inParallel(100, () => take(first, KEY, rules)))).to.equal(17 - 4)
    })

    it('of an exhausted window is 0 until that window ends', async () => {
      const replica = await aReplica({ replicas: 3 })
      await inParallel(61, () => take(replica))
      await killRedis(replica)
      const rejections = await inParallel(50, () => take(replica))
      expect(new Set(rejections.map(({ kind }) => kind))).to.deep.equal(new Set(['exhausted']))
      clock.advanceSeconds(60)
      expect(countAdmitted(await inParallel(50, () => take(replica)))).to.equal(20)
    })

    it('of a banned key is 0 until the ban ends', async () => {
      const replica = await aReplica({ replicas: 2 })
      const rules = someQuotaRules({ limits: { minute: 2 }, ban: someBanRules({ graceMs: 0, minStrikes: 2, firstMs: 90_000 }) })
      await inSequence(5, async () => {
        clock.advanceMs(1)
        return take(replica, KEY, rules)
      })
      const endMs = clock.nowMs() + 90_000
      await killRedis(replica)
      clock.advanceSeconds(60)
      const verdict = await take(replica, KEY, rules)
      expect(verdict).to.include({ kind: 'banned', retryAfterSeconds: 30 })
      expect(verdict.quota.binding).to.include({ remaining: 0, resetSeconds: Math.ceil(endMs / 1000) })
      clock.moveTo(endMs - 1)
      expect((await take(replica, KEY, rules)).kind).to.equal('banned')
      clock.advanceMs(1)
      expect((await take(replica, KEY, rules)).kind).to.equal('admitted')
    })

    it('is not granted to a stale record of the key', async () => {
      const replica = await aReplica()
      await replica.quotas.take(KEY, FREE, { version: 3 })
      await killRedis(replica)
      expect(await replica.quotas.take(KEY, FREE, { version: 2 })).to.deep.equal({ kind: 'stale', knownVersion: 3 })
      expect((await replica.quotas.take(KEY, FREE, { version: 2, readSince: 3 })).kind).to.equal('admitted')
    })

    it('is at most one limit per minute in total if Redis is lost and restored repeatedly', async () => {
      const replica = await aReplica({ replicas: 1 })
      let admitted = 0
      for (let round = 0; round < 4; round++) {
        admitted += countAdmitted(await inParallel(25, () => take(replica)))
        await killRedis(replica)
        admitted += countAdmitted(await inParallel(25, () => take(replica)))
        await restoreRedis(replica)
      }
      expect(admitted).to.equal(60)
      await untilUsed(60, 60)
    })

    it('is at most one limit, in addition to that of Redis, if every response comes too late', async () => {
      const replica = await aReplica({ replicas: 1 })
      proxy.delayMs = 150
      let admitted = 0
      const endMs = performance.now() + 2_000
      while (performance.now() < endMs) {
        if ('charge' in (await take(replica))) admitted += 1
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(admitted).to.be.within(1, 120)
    })

    it('is at most one limit per minute in total if each reconciliation loses Redis again', async () => {
      const replica = await aReplica({ replicas: 1 })
      let admitted = 0
      replica.connection.breaker.onChange((isUp) => isUp && proxy.stopForwarding())
      proxy.stopForwarding()
      for (let round = 0; round < 3; round++) {
        admitted += countAdmitted(await inParallel(80, () => take(replica)))
        const changes = replica.changes.length
        proxy.resume()
        await until('Redis was used and was lost again', async () => {
          admitted += countAdmitted([await take(replica)])
          return replica.changes.length >= changes + 2 && !replica.connection.breaker.isUp
        })
      }
      expect(admitted).to.equal(60)
    })

    it('is at most one limit, in addition to that of Redis, if a third of the responses are lost', async () => {
      const replica = await aReplica({ replicas: 1 })
      let admitted = 0
      for (let round = 0; round < 3; round++) {
        proxy.dropResponses()
        admitted += countAdmitted(await inParallel(40, () => take(replica)))
        admitted += countAdmitted(await inParallel(40, () => take(replica)))
        proxy.resume()
        await untilUp(replica)
      }
      expect(admitted).to.be.within(60, 120)
    })
  })

  describe('after an outage, Redis', () => {
    it('has counted every request of the outage, once', async () => {
      const replica = await aReplica()
      await inParallel(10, () => take(replica))
      await killRedis(replica)
      expect(countAdmitted(await inParallel(30, () => take(replica)))).to.equal(30)
      await restoreRedis(replica)
      await untilUsed(40, 40)
      expect((await take(replica)).quota).to.nested.include({ 'minute.remaining': 19, 'day.remaining': 959 })
      await killRedis(replica)
      await restoreRedis(replica)
      await untilUsed(41, 41)
    })

    it('has counted the requests of two replicas', async () => {
      const both = [await aReplica({ replicas: 2 }), await aReplica({ replicas: 2 })] as const
      await Promise.all(both.map((replica) => take(replica)))
      await killRedis(...both)
      const admitted = countAdmitted((await Promise.all(both.map((replica) => inParallel(50, () => take(replica))))).flat())
      expect(admitted).to.be.within(58, 60)
      await restoreRedis(...both)
      await untilUsed(2 + admitted, 2 + admitted)
    })

    it('has counted the requests of 1,000 keys', async () => {
      const replica = await aReplica()
      await killRedis(replica)
      for (let round = 0; round < 3; round++) await inParallel(1000, (index) => take(replica, `key_${index}`))
      await restoreRedis(replica)
      for (let index = 0; index < 1000; index++) await untilUsed(3, 3, `key_${index}`)
    })

    it('has refunded requests from before and from the outage', async () => {
      const replica = await aReplica()
      const before = await inParallel(10, () => take(replica))
      await killRedis(replica)
      const meanwhile = await inParallel(10, () => take(replica))
      for (const verdict of [...before.slice(0, 3), ...meanwhile.slice(0, 4)])
        await replica.quotas.refund(KEY, requireCharge(verdict), FREE)
      expect((await take(replica)).quota.minute.remaining).to.equal(60 - 20 + 7 - 1)
      await restoreRedis(replica)
      await untilUsed(14, 14)
    })

    it('decides with the requests of the outage from the first request on', async () => {
      const replica = await aReplica()
      await killRedis(replica)
      expect(countAdmitted(await inParallel(45, () => take(replica)))).to.equal(45)
      await redis.start()
      let admitted = 45
      await until('Redis decides', async () => {
        admitted += countAdmitted(await inParallel(10, () => take(replica)))
        return replica.connection.breaker.isUp
      })
      admitted += countAdmitted(await inParallel(200, () => take(replica)))
      expect(admitted).to.equal(60)
      await untilUsed(60, 60)
    })
  })

  describe('frozen under load, Redis', () => {
    it('delays 200 requests by one timeout and later ones not at all, and has counted all of them after it resumes', async () => {
      const rules = someQuotaRules({ limits: { minute: 1000, day: 10_000 } })
      const replica = await aReplica({}, redis.url)
      await inParallel(10, () => take(replica, KEY, rules))
      await redis.freeze()
      const startMs = performance.now()
      const sent = await inParallel(200, () => take(replica, KEY, rules))
      const firstMs = performance.now() - startMs
      const unsent = await inSequence(200, () => take(replica, KEY, rules))
      const laterMs = performance.now() - startMs - firstMs
      console.error(`      frozen: 200 at once in ${firstMs.toFixed(0)} ms, 200 more in sequence in ${laterMs.toFixed(1)} ms`)
      expect(countAdmitted([...sent, ...unsent])).to.equal(400)
      expect(firstMs).to.be.below(1_500)
      expect(laterMs).to.be.below(1_500)
      expect(replica.changes).to.deep.equal([true, false])

      await redis.unfreeze()
      await untilUp(replica)
      await untilUsed(410, 410)
      expect((await take(replica, KEY, rules)).quota.minute.remaining).to.equal(1000 - 411)
      expect(replica.changes).to.deep.equal([true, false, true])
    })

    it('admits no more than the limit, although requests in flight are decided twice', async () => {
      const replica = await aReplica({}, redis.url)
      const before = await inParallel(50, () => take(replica))
      await redis.freeze()
      const meanwhile = await inParallel(30, () => take(replica))
      await redis.unfreeze()
      await untilUp(replica)
      const after = await inParallel(30, () => take(replica))
      expect(countAdmitted([...before, ...meanwhile, ...after])).to.equal(60)
      await untilUsed(60, 60)
    })
  })

  describe('when responses are lost after Redis has decided', () => {
    it('counts each admitted request once, whether its response was lost or the replica decided', async () => {
      const replica = await aReplica()
      await inParallel(5, () => take(replica))
      proxy.dropResponses()
      const lost = await inParallel(12, () => take(replica))
      const own = await inParallel(9, () => take(replica))
      expect(countAdmitted([...lost, ...own])).to.equal(21)
      expect(await observer.used(KEY)).to.deep.equal([17, 17])
      proxy.resume()
      await untilUp(replica)
      await untilUsed(26, 26)
    })

    it('does not refund a request that Redis may never have counted', async () => {
      const replica = await aReplica({}, redis.url)
      await inParallel(5, () => take(replica))
      await redis.freeze()
      const uncertain = await take(replica)
      await redis.kill()
      await replica.quotas.refund(KEY, requireCharge(uncertain), FREE)
      await redis.start()
      await untilUp(replica)
      await replica.fallback.reportPendingUsage()
      expect(await observer.used(KEY)).to.deep.equal([5, 5])
    })

    it('counts each refund once', async () => {
      const replica = await aReplica()
      const charges = (await inParallel(10, () => take(replica))).map(requireCharge)
      proxy.dropResponses()
      await inParallel(3, (index) => replica.quotas.refund(KEY, charges[index] ?? requireCharge(undefined), FREE))
      await inParallel(2, (index) => replica.quotas.refund(KEY, charges[3 + index] ?? requireCharge(undefined), FREE))
      proxy.resume()
      await untilUp(replica)
      await untilUsed(5, 5)
    })

    it('counts pending usage once if the response to its reconciliation is lost', async () => {
      const replica = await aReplica()
      await killRedis(replica)
      await inParallel(8, () => take(replica))
      // The store was called before, so it has sent its pending usage by now.
      let isLost = false
      replica.connection.breaker.onChange((isUp) => {
        if (isUp && !isLost) proxy.dropResponses()
        isLost = true
      })
      await redis.start()
      await untilUsed(8, 8)
      await untilUnavailable(replica)
      proxy.resume()
      await untilUp(replica)
      await take(replica)
      expect(await observer.used(KEY)).to.deep.equal([9, 9])
    })

    it('counts strikes from the rejection cache once if the response to their report is lost', async () => {
      const replica = await aReplica()
      await inParallel(80, () => take(replica))
      clock.advanceMs(1_500)
      await inSequence(40, () => take(replica))
      clock.advanceMs(1_000)
      proxy.dropResponses()
      await take(replica)
      expect((await observer.hash(KEY)).strikes).to.equal(41)
      proxy.resume()
      await untilUp(replica)
      await until('Redis decides again', async () => (await take(replica)).kind !== 'admitted')
      expect((await observer.hash(KEY)).strikes).to.be.within(41, 42)
    })
  })

  it('neither throws nor waits in any outage, and reports each state change once', async () => {
    const replica = await aReplica()
    const problems: readonly (() => Promise<void>)[] = [
      async () => proxy.stopForwarding(),
      async () => proxy.dropResponses(),
      async () => proxy.closeConnections(),
      () => redis.kill(),
      () => redis.freeze(),
      () => redis.unfreeze(),
    ]
    let slowestMs = 0
    let isRunning = true
    const load = inParallel(8, async (worker) => {
      for (let count = 0; isRunning; count++) {
        const startMs = performance.now()
        const verdict = await take(replica, `key_${worker}_${count % 50}`)
        if ('charge' in verdict && count % 3 === 0) await replica.quotas.refund(`key_${worker}_${count % 50}`, verdict.charge, FREE)
        slowestMs = Math.max(slowestMs, performance.now() - startMs)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })
    for (const problem of problems) {
      await problem()
      // The replica detects a closed connection even if it reconnects at once.
      await until('the replica detects the outage', () => !replica.connection.breaker.isUp || replica.changes.at(-1) === true, 5_000)
      await redis.start()
      proxy.resume()
      await untilUp(replica)
    }
    isRunning = false
    await load
    expect(replica.changes.every((isUp, index) => isUp === (index % 2 === 0))).to.equal(true)
    expect(slowestMs).to.be.below(2_000)
    console.error(`      slowest call: ${slowestMs.toFixed(0)} ms; changes: ${replica.changes.length}`)
  })
})
