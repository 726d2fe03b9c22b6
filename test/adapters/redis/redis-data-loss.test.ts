import { expect } from 'chai'
import { RESTORING_SUFFIX } from '../../../src/adapters/redis/quota-script.js'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica, RedisReplicaOptions } from '../../support/redis-replica.js'
import { aRedisReplica, KEYS, RedisObserver, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { until } from '../../support/until.js'
import { countAdmitted, inParallelBatches, inParallel, inSequence } from '../../support/verdicts.js'

const FREE = someQuotaRules()
const BANNING = someQuotaRules({ limits: { minute: 2 }, ban: someBanRules({ graceMs: 0, minStrikes: 2 }) })
const KEY = 'key_one'

describe('a Redis that has lost its data', function () {
  this.timeout(30_000)
  let redis: OwnEngine
  let observer: RedisObserver
  let clock: MovableClock
  const open: RedisReplica[] = []

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    clock = new MovableClock()
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
    // A restart loads what was saved last.
    await observer.client.save()
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all(open.splice(0).map((replica) => replica.close()))
    observer.close()
  })

  after(() => redis?.stop())

  /** Replicas that also notice without a request that Redis has lost data. */
  async function someReplicas(count: number, options: RedisReplicaOptions = {}): Promise<RedisReplica[]> {
    const replicas = await inParallel(count, () => aRedisReplica(redis.url, { clock, replicas: count, ...options }))
    open.push(...replicas)
    await Promise.all(replicas.map((replica) => replica.registry.start()))
    return replicas
  }

  const take = ({ quotas }: RedisReplica, keyId = KEY, rules = FREE) => takeOne(quotas, keyId, rules)
  const untilRestored = (replicas: readonly RedisReplica[], times = 1) =>
    until('every replica has restored what it knew', () =>
      replicas.every(({ restored, connection }) => restored.length >= times && connection.breaker.isUp),
    )

  const restart = async () => {
    await redis.kill()
    await Promise.all(open.map((replica) => untilUnavailable(replica)))
    await redis.start()
  }
  const losses: Readonly<Record<string, { readonly prepare?: () => Promise<unknown>; readonly lose: () => Promise<unknown> }>> = {
    'was emptied by FLUSHALL': { lose: () => observer.client.flushall() },
    'was restarted without its data': { lose: restart },
    'was restarted with old data': { prepare: () => observer.client.save(), lose: restart },
  }

  for (const [how, { prepare, lose }] of Object.entries(losses)) {
    for (const count of [1, 2, 3]) {
      it(`and ${how} gets back windows, bans and key versions from ${count} replicas with different knowledge`, async () => {
        const replicas = await someReplicas(count)
        const [first, last] = [replicas[0] ?? noReplica(), replicas.at(-1) ?? noReplica()]
        await inSequence(7, () => take(first))
        await prepare?.()
        // The first replica knows less than the last one.
        await inSequence(60 - 7, (index) => take(replicas[index % count] ?? last))
        await last.control.announce(KEY, 3)
        await last.quotas.take(KEY, FREE, { version: 3 })
        await inSequence(5, () => {
          clock.advanceMs(1)
          return take(last, 'key_banned', BANNING)
        })
        const before = await Promise.all([observer.hash(KEY), observer.hash('key_banned')])
        expect(before[1]).to.include({ banLevel: 1 })

        await lose()
        await untilRestored(replicas)
        expect(await Promise.all([observer.hash(KEY), observer.hash('key_banned')])).to.deep.equal(before)
        expect((await first.quotas.take(KEY, FREE, { version: 2 })).kind).to.equal('stale')
        const verdict = await first.quotas.take(KEY, FREE, { version: 3 })
        expect([verdict.kind, 'quota' in verdict && verdict.quota.day.remaining]).to.deep.equal(['exhausted', 940])
        expect(await take(first, 'key_banned', BANNING)).to.include({ kind: 'banned', retryAfterSeconds: 60 })
        clock.advanceSeconds(60)
        expect((await take(last, 'key_banned', BANNING)).kind).to.equal('admitted')
      })
    }
  }

  it('gets back 1,000 keys, of which each of three replicas knows a third better than the others', async () => {
    const replicas = await someReplicas(3, { hasNoTimeout: true })
    const keyIds = Array.from({ length: 1_000 }, (_, index) => `key_${index}`)
    for (let round = 0; round < 3; round++)
      await inParallelBatches(1_000, (index) => take(replicas[(index + round) % 3] ?? noReplica(), keyIds[index]))
    const before = await Promise.all(keyIds.map((keyId) => observer.hash(keyId)))
    await observer.client.flushall()
    await untilRestored(replicas)
    expect(await Promise.all(keyIds.map((keyId) => observer.hash(keyId)))).to.deep.equal(before)
  })

  it('is not used while a replica that knows many keys restores them, although the others have settled', async () => {
    const [knowing, other] = (await someReplicas(2, { settleMs: 300, hasNoTimeout: true })) as [RedisReplica, RedisReplica]
    await inParallelBatches(4_000, (index) => take(knowing, `key_${index}`))
    await take(other)
    let usedWhenOtherIsUp: number | undefined
    other.connection.breaker.onChange((isUp) => {
      if (isUp) usedWhenOtherIsUp ??= knowing.restored.length
    })
    // Slower than the settle time.
    const { recoveryHash } = knowing.connection
    const reconcile = recoveryHash.reconcile.bind(recoveryHash)
    recoveryHash.reconcile = async (...args) => {
      const reply = await reconcile(...args)
      await new Promise((resolve) => setTimeout(resolve, 20))
      return reply
    }
    await observer.client.flushall()
    await untilRestored([knowing, other])
    expect(usedWhenOtherIsUp).to.equal(1)
    expect((await take(other, 'key_3999')).quota.day.remaining).to.equal(998)
  })

  it('is used although its clock stepped back during a restore, which makes the announcement last too long', async () => {
    await observer.client.set(`${KEYS.epoch(0)}${RESTORING_SUFFIX}`, 1_000, 'PX', 3_600_000)
    const [replica = noReplica()] = await someReplicas(1)
    expect(replica.connection.breaker.isUp).to.equal(true)
  })

  it('grants nothing twice: a Free key gets 60 of a minute, although Redis is emptied twice', async () => {
    const replicas = await someReplicas(3, { settleMs: 600 })
    await Promise.all(replicas.map((replica) => untilUp(replica)))
    let admitted = 0
    for (let round = 1; round <= 2; round++) {
      admitted += countAdmitted(await inSequence(8, (index) => take(replicas[index % 3] ?? noReplica())))
      await observer.client.flushall()
      admitted += countAdmitted(await inSequence(3, (index) => take(replicas[index % 3] ?? noReplica())))
      await untilRestored(replicas, round)
      for (const replica of replicas) await replica.fallback.reportPendingUsage()
      expect((await observer.hash(KEY)).dayUsed).to.equal(admitted)
    }
    admitted += countAdmitted(await inParallel(90, (index) => take(replicas[index % 3] ?? noReplica())))
    expect(admitted).to.equal(60)
  })

  it('is not asked until it has settled; meanwhile every replica grants its share and none throws', async () => {
    const [early, late] = (await someReplicas(2, { settleMs: 1_000 })) as [RedisReplica, RedisReplica]
    await Promise.all([untilUp(early), untilUp(late)])
    await inSequence(10, () => take(early))
    await inSequence(30, () => take(late))
    await observer.client.flushall()
    const lostAtMs = performance.now()
    // `early` restores the 10 that it knows. Only `late` knows all 40.
    const [share, other] = await Promise.all([inParallel(50, () => take(early)), inParallel(50, () => take(late))])
    expect([countAdmitted(share), countAdmitted(other)]).to.deep.equal([25, 10])
    await Promise.all([untilUp(early), untilUp(late)])
    expect(performance.now() - lostAtMs).to.be.within(950, 4_000)
    expect((await take(early)).kind).to.equal('exhausted')
    expect((await observer.hash(KEY)).minuteUsed).to.equal(40 + 25 + 10)
  })

  it('is not asked by a replica that starts before the others have restored what they know', async () => {
    const [knowing] = await someReplicas(1, { settleMs: 1_000 })
    await untilUp(knowing ?? noReplica())
    await inSequence(60, () => take(knowing ?? noReplica()))
    await observer.client.flushall()
    const [started] = await someReplicas(1, { settleMs: 1_000 })
    await untilUp(started ?? noReplica())
    expect((await take(started ?? noReplica())).kind).to.equal('exhausted')
  })

  it('is restored again if it loses the data while it is being restored', async () => {
    const [replica = noReplica()] = await someReplicas(1, { hasNoTimeout: true })
    await inParallelBatches(1_000, (index) => take(replica, `key_${index}`))
    const { recoveryHash } = replica.connection
    const reconcile = recoveryHash.reconcile.bind(recoveryHash)
    let calls = 0
    recoveryHash.reconcile = async (...args) => {
      calls += 1
      if (calls === 100) await observer.client.flushall()
      return reconcile(...args)
    }
    await observer.client.flushall()
    await untilRestored([replica])
    expect(await observer.client.keys(KEYS.quota('*'))).to.have.lengthOf(1_000)
    expect(replica.restored).to.deep.equal([1_000])
  })
})

function noReplica(): never {
  throw new Error('No replica')
}
