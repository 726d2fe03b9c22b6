import { expect } from 'chai'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import { freePort } from '../../support/engines/free-port.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica, RedisReplicaOptions } from '../../support/redis-replica.js'
import { aRedisReplica, Onlooker, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import type { UnreliableLine } from '../../support/unreliable-line.js'
import { anUnreliableLine } from '../../support/unreliable-line.js'
import { until } from '../../support/until.js'
import { admittedOf, chargeOf, inSequence, times } from '../../support/verdicts.js'

const FREE = someQuotaRules()
const KEY = 'key_one'

describe('the quotas of a replica whose Redis is away', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let line: UnreliableLine
  let onlooker: Onlooker
  let clock: MovableClock
  const open: RedisReplica[] = []

  before(async function () {
    redis = await anOwnRedis(this, ['--appendonly', 'yes', '--appendfsync', 'always'])
  })

  beforeEach(async () => {
    clock = new MovableClock()
    line = await anUnreliableLine(redis.url)
    onlooker = new Onlooker(redis.url)
    await onlooker.client.flushall()
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all(open.splice(0).map((replica) => replica.close()))
    onlooker.close()
    await line.close()
  })

  after(() => redis?.stop())

  async function aReplica(options: RedisReplicaOptions = {}, url = line.url): Promise<RedisReplica> {
    const replica = await aRedisReplica(url, { clock, ...options })
    open.push(replica)
    if (url === line.url) await untilUp(replica)
    return replica
  }

  /** Redis goes, and the replica has seen it. */
  async function goAway(...replicas: RedisReplica[]): Promise<void> {
    await redis.kill()
    for (const replica of replicas) await untilUnavailable(replica)
  }

  async function comeBack(...replicas: RedisReplica[]): Promise<void> {
    await redis.start()
    for (const replica of replicas) await untilUp(replica)
  }

  const take = ({ quotas }: RedisReplica, keyId = KEY, rules = FREE) => takeOne(quotas, keyId, rules)
  const usedIs = (minute: number, day: number, keyId = KEY) =>
    until(`${minute} of the minute and ${day} of the day are used`, async () => {
      const [usedOfMinute, usedOfDay] = await onlooker.used(keyId)
      return usedOfMinute === minute && usedOfDay === day
    })

  describe('what it gives out', () => {
    it('of a key that it does not know is its part of the plan, rounded up, in both windows', async () => {
      for (const [replicas, perMinute, perDay] of [
        [1, 60, 1000],
        [2, 30, 500],
        [7, 9, 143],
        [100, 1, 10],
      ] as const) {
        const replica = await aReplica({ replicas }, `redis://127.0.0.1:${await freePort()}`)
        expect(admittedOf(await times(200, () => take(replica, `key_${replicas}`)))).to.equal(perMinute)
        let admitted = perMinute
        for (let minute = 0; minute < 40; minute++) {
          clock.advanceSeconds(60)
          admitted += admittedOf(await times(70, () => take(replica, `key_${replicas}`)))
        }
        expect(admitted).to.equal(Math.min(perDay, 41 * perMinute))
      }
    })

    it('of a key that it knows is its part of what all replicas had left, in both windows', async () => {
      const [first, second] = [await aReplica({ replicas: 3 }), await aReplica({ replicas: 3 })]
      const rules = someQuotaRules({ limits: { minute: 60, day: 100 } })
      await inSequence(50, (index) => take(index % 2 ? first : second, KEY, rules))
      await goAway(first, second)
      // Of 10 and 11, as the last answers of each said.
      expect(admittedOf(await times(100, () => take(first, KEY, rules)))).to.equal(4)
      expect(admittedOf(await times(100, () => take(second, KEY, rules)))).to.equal(4)
      clock.advanceSeconds(60)
      // ceil(50 / 3) of the day, less 4; the minute has 20 again.
      expect(admittedOf(await times(100, () => take(first, KEY, rules)))).to.equal(17 - 4)
    })

    it('of a window that is used up is nothing, until that window is over', async () => {
      const replica = await aReplica({ replicas: 3 })
      await times(61, () => take(replica))
      await goAway(replica)
      const rejections = await times(50, () => take(replica))
      expect(new Set(rejections.map(({ kind }) => kind))).to.deep.equal(new Set(['exhausted']))
      clock.advanceSeconds(60)
      expect(admittedOf(await times(50, () => take(replica)))).to.equal(20)
    })

    it('of a key that is banned is nothing, until the ban is over', async () => {
      const replica = await aReplica({ replicas: 2 })
      const rules = someQuotaRules({ limits: { minute: 2 }, ban: someBanRules({ graceMs: 0, minStrikes: 2, firstMs: 90_000 }) })
      await inSequence(5, async () => {
        clock.advanceMs(1)
        return take(replica, KEY, rules)
      })
      const endMs = clock.nowMs() + 90_000
      await goAway(replica)
      clock.advanceSeconds(60)
      const verdict = await take(replica, KEY, rules)
      expect(verdict).to.include({ kind: 'banned', retryAfterSeconds: 30 })
      expect(verdict.quota.binding).to.include({ remaining: 0, resetSeconds: Math.ceil(endMs / 1000) })
      clock.moveTo(endMs - 1)
      expect((await take(replica, KEY, rules)).kind).to.equal('banned')
      clock.advanceMs(1)
      expect((await take(replica, KEY, rules)).kind).to.equal('admitted')
    })

    it('is nothing to a record of a key that is older than one that it has seen', async () => {
      const replica = await aReplica()
      await replica.quotas.take(KEY, FREE, { version: 3 })
      await goAway(replica)
      expect(await replica.quotas.take(KEY, FREE, { version: 2 })).to.deep.equal({ kind: 'outdated' })
      expect((await replica.quotas.take(KEY, FREE, { version: 2, justRead: true })).kind).to.equal('admitted')
    })

    it('is no more than a plan in a minute though Redis goes and comes back all the time', async () => {
      const replica = await aReplica({ replicas: 1 })
      let admitted = 0
      for (let round = 0; round < 4; round++) {
        admitted += admittedOf(await times(25, () => take(replica)))
        await goAway(replica)
        admitted += admittedOf(await times(25, () => take(replica)))
        await comeBack(replica)
      }
      expect(admitted).to.equal(60)
      await usedIs(60, 60)
    })

    it('is no more than a plan in a minute though every answer comes too late', async () => {
      const replica = await aReplica({ replicas: 1 })
      line.delayMs = 150
      let admitted = 0
      const endMs = performance.now() + 2_000
      while (performance.now() < endMs) {
        if ('charge' in (await take(replica))) admitted += 1
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(admitted).to.be.within(1, 120)
    })

    it('is no more than a plan in a minute though it loses Redis each time that it tells what it gave out', async () => {
      const replica = await aReplica({ replicas: 1 })
      let admitted = 0
      replica.connection.breaker.onChange((isUp) => isUp && line.fallSilent())
      line.fallSilent()
      for (let round = 0; round < 3; round++) {
        admitted += admittedOf(await times(80, () => take(replica)))
        const changes = replica.changes.length
        line.pass()
        await until('it was back, and is away', async () => {
          admitted += admittedOf([await take(replica)])
          return replica.changes.length >= changes + 2 && !replica.connection.breaker.isUp
        })
      }
      expect(admitted).to.equal(60)
    })

    it('is no more than a plan in a minute though a third of all answers are lost', async () => {
      const replica = await aReplica({ replicas: 1 })
      let admitted = 0
      for (let round = 0; round < 3; round++) {
        line.dropReplies()
        admitted += admittedOf(await times(40, () => take(replica)))
        admitted += admittedOf(await times(40, () => take(replica)))
        line.pass()
        await untilUp(replica)
      }
      expect(admitted).to.be.within(60, 120)
    })
  })

  describe('when it is back', () => {
    it('knows of every request that was admitted meanwhile, once', async () => {
      const replica = await aReplica()
      await times(10, () => take(replica))
      await goAway(replica)
      expect(admittedOf(await times(30, () => take(replica)))).to.equal(30)
      await comeBack(replica)
      await usedIs(40, 40)
      expect((await take(replica)).quota).to.nested.include({ 'minute.remaining': 19, 'day.remaining': 959 })
      await goAway(replica)
      await comeBack(replica)
      await usedIs(41, 41)
    })

    it('knows of what each of two replicas admitted', async () => {
      const both = [await aReplica({ replicas: 2 }), await aReplica({ replicas: 2 })] as const
      await Promise.all(both.map((replica) => take(replica)))
      await goAway(...both)
      const admitted = admittedOf((await Promise.all(both.map((replica) => times(50, () => take(replica))))).flat())
      expect(admitted).to.be.within(58, 60)
      await comeBack(...both)
      await usedIs(2 + admitted, 2 + admitted)
    })

    it('knows of 1,000 keys', async () => {
      const replica = await aReplica()
      await goAway(replica)
      for (let round = 0; round < 3; round++) await times(1000, (index) => take(replica, `key_${index}`))
      await comeBack(replica)
      for (let index = 0; index < 1000; index++) await usedIs(3, 3, `key_${index}`)
    })

    it('adds requests of a minute that is over to the day alone', async () => {
      const replica = await aReplica()
      await times(5, () => take(replica))
      await goAway(replica)
      await times(7, () => take(replica))
      clock.advanceSeconds(60)
      await times(3, () => take(replica))
      await comeBack(replica)
      await usedIs(3, 15)
    })

    it('adds nothing of a day that is over', async () => {
      const replica = await aReplica()
      await goAway(replica)
      await times(7, () => take(replica))
      clock.advanceSeconds(86_400)
      await comeBack(replica)
      await until('it was told', async () => 'm' in (await onlooker.hash(KEY)))
      expect(await onlooker.used(KEY)).to.deep.equal([0, 0])
    })

    it('knows of requests that were given back: those of before, and those of meanwhile', async () => {
      const replica = await aReplica()
      const before = await times(10, () => take(replica))
      await goAway(replica)
      const meanwhile = await times(10, () => take(replica))
      for (const verdict of [...before.slice(0, 3), ...meanwhile.slice(0, 4)]) await replica.quotas.refund(KEY, chargeOf(verdict), FREE)
      expect((await take(replica)).quota.minute.remaining).to.equal(60 - 20 + 7 - 1)
      await comeBack(replica)
      await usedIs(14, 14)
    })

    it('does not give a request of a minute that is over back to the minute after it', async () => {
      const replica = await aReplica()
      const [old] = await times(5, () => take(replica))
      await goAway(replica)
      clock.advanceSeconds(60)
      await times(5, () => take(replica))
      await replica.quotas.refund(KEY, chargeOf(old), FREE)
      await comeBack(replica)
      await usedIs(5, 9)
    })

    it('decides at once with what was admitted meanwhile: of 200 requests then no more are served than are left', async () => {
      const replica = await aReplica()
      await goAway(replica)
      expect(admittedOf(await times(45, () => take(replica)))).to.equal(45)
      await redis.start()
      let admitted = 45
      await until('Redis decides', async () => {
        admitted += admittedOf(await times(10, () => take(replica)))
        return replica.connection.breaker.isUp
      })
      admitted += admittedOf(await times(200, () => take(replica)))
      expect(admitted).to.equal(60)
      await usedIs(60, 60)
    })
  })

  describe('frozen in the middle of traffic', () => {
    it('lets 200 requests wait for one time-out, decides the rest at once, and counts what it admitted exactly when it thaws', async () => {
      const rules = someQuotaRules({ limits: { minute: 1000, day: 10_000 } })
      const replica = await aReplica({}, redis.url)
      await times(10, () => take(replica, KEY, rules))
      await redis.freeze()
      const beganMs = performance.now()
      const sent = await times(200, () => take(replica, KEY, rules))
      const firstMs = performance.now() - beganMs
      const unsent = await inSequence(200, () => take(replica, KEY, rules))
      const laterMs = performance.now() - beganMs - firstMs
      console.error(`      frozen: 200 at once in ${firstMs.toFixed(0)} ms, 200 more in sequence in ${laterMs.toFixed(1)} ms`)
      expect(admittedOf([...sent, ...unsent])).to.equal(400)
      expect(firstMs).to.be.below(1_500)
      expect(laterMs).to.be.below(1_500)
      expect(replica.changes).to.deep.equal([true, false])

      await redis.thaw()
      await untilUp(replica)
      await usedIs(410, 410)
      expect((await take(replica, KEY, rules)).quota.minute.remaining).to.equal(1000 - 411)
      expect(replica.changes).to.deep.equal([true, false, true])
    })

    it('never serves a key more than its plan though requests that are under way are decided by Redis and here', async () => {
      const replica = await aReplica({}, redis.url)
      const before = await times(50, () => take(replica))
      await redis.freeze()
      const meanwhile = await times(30, () => take(replica))
      await redis.thaw()
      await untilUp(replica)
      const after = await times(30, () => take(replica))
      expect(admittedOf([...before, ...meanwhile, ...after])).to.equal(60)
      await usedIs(60, 60)
    })

    it('refuses and admits as before for keys that nobody else had used', async () => {
      const replica = await aReplica({ replicas: 2 }, redis.url)
      await redis.freeze()
      const verdicts = await times(200, (index) => take(replica, `key_${index % 4}`))
      expect(admittedOf(verdicts)).to.equal(4 * 30)
      for (const { quota } of verdicts) expect(quota.binding.remaining).to.be.within(0, 59)
    })
  })

  describe('behind a line that loses answers after Redis has decided', () => {
    it('counts each admitted request once, whether its answer was lost or it was decided here', async () => {
      const replica = await aReplica()
      await times(5, () => take(replica))
      line.dropReplies()
      const lost = await times(12, () => take(replica))
      const own = await times(9, () => take(replica))
      expect(admittedOf([...lost, ...own])).to.equal(21)
      expect(await onlooker.used(KEY)).to.deep.equal([17, 17])
      line.pass()
      await untilUp(replica)
      await usedIs(26, 26)
    })

    it('counts refunds once, too', async () => {
      const replica = await aReplica()
      const charges = (await times(10, () => take(replica))).map(chargeOf)
      line.dropReplies()
      await times(3, (index) => replica.quotas.refund(KEY, charges[index] ?? chargeOf(undefined), FREE))
      await times(2, (index) => replica.quotas.refund(KEY, charges[3 + index] ?? chargeOf(undefined), FREE))
      line.pass()
      await untilUp(replica)
      await usedIs(5, 5)
    })

    it('tells what was admitted here once, though the answer to that is lost', async () => {
      const replica = await aReplica()
      await goAway(replica)
      await times(8, () => take(replica))
      // The store was told before and has sent by now what it has to tell.
      let isLost = false
      replica.connection.breaker.onChange((isUp) => {
        if (isUp && !isLost) line.dropReplies()
        isLost = true
      })
      await redis.start()
      await usedIs(8, 8)
      await untilUnavailable(replica)
      line.pass()
      await untilUp(replica)
      await take(replica)
      expect(await onlooker.used(KEY)).to.deep.equal([9, 9])
    })

    it('tells strikes that it did not ask Redis for once, though the answer to that is lost', async () => {
      const replica = await aReplica()
      await times(80, () => take(replica))
      clock.advanceMs(1_500)
      await inSequence(40, () => take(replica))
      clock.advanceMs(1_000)
      line.dropReplies()
      await take(replica)
      expect((await onlooker.hash(KEY))['s']).to.equal(41)
      line.pass()
      await untilUp(replica)
      await until('what there is to tell was told', async () => (await take(replica)).kind !== 'admitted')
      expect((await onlooker.hash(KEY))['s']).to.be.within(41, 42)
    })
  })

  it('neither rejects nor waits on any call, whatever happens to the line, and tells of each change once', async () => {
    const replica = await aReplica()
    const problems: readonly (() => Promise<void>)[] = [
      async () => line.fallSilent(),
      async () => line.dropReplies(),
      async () => line.cut(),
      () => redis.kill(),
      () => redis.freeze(),
      () => redis.thaw(),
    ]
    let slowestMs = 0
    let goesOn = true
    const traffic = times(8, async (worker) => {
      for (let count = 0; goesOn; count++) {
        const beganMs = performance.now()
        const verdict = await take(replica, `key_${worker}_${count % 50}`)
        if ('charge' in verdict && count % 3 === 0) await replica.quotas.refund(`key_${worker}_${count % 50}`, verdict.charge, FREE)
        slowestMs = Math.max(slowestMs, performance.now() - beganMs)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })
    for (const problem of problems) {
      await problem()
      // A cut line is a closed connection, which is seen even when it is open again at once.
      await until('it is seen', () => !replica.connection.breaker.isUp || replica.changes.at(-1) === true, 5_000)
      await redis.start()
      line.pass()
      await untilUp(replica)
    }
    goesOn = false
    await traffic
    expect(replica.changes.every((isUp, index) => isUp === (index % 2 === 0))).to.equal(true)
    expect(slowestMs).to.be.below(2_000)
    console.error(`      slowest call: ${slowestMs.toFixed(0)} ms; changes: ${replica.changes.length}`)
  })
})
