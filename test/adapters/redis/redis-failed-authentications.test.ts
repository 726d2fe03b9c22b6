import { expect } from 'chai'
import { RedisFailedAuthentications } from '../../../src/adapters/redis/redis-failed-authentications.js'
import { someQuotaRules } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { countCommands } from '../../support/engines/redis-client.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica, RedisObserver, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { inSequence, inParallel } from '../../support/verdicts.js'

const ADDRESS = '192.0.2.1'
const PER_MINUTE = 30

describe('failed authentications counted in Redis', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let observer: RedisObserver
  let clock: MovableClock
  let replica: RedisReplica
  let other: RedisReplica
  let failures: RedisFailedAuthentications
  let otherFailures: RedisFailedAuthentications

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
    clock = new MovableClock()
    replica = await aRedisReplica(redis.url, { clock })
    other = await aRedisReplica(redis.url, { clock })
    await Promise.all([untilUp(replica), untilUp(other)])
    failures = new RedisFailedAuthentications(replica.connection, PER_MINUTE, clock)
    otherFailures = new RedisFailedAuthentications(other.connection, PER_MINUTE, clock)
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all([replica.close(), other.close()])
    observer.close()
  })

  after(() => redis?.stop())

  it('are shared by all replicas', async () => {
    const counted = await inParallel(100, (index) => (index % 2 ? otherFailures : failures).count(ADDRESS))
    expect(counted.filter(({ admitted }) => admitted)).to.have.lengthOf(PER_MINUTE)
    for (const each of [failures, otherFailures]) expect((await each.peek(ADDRESS)).remaining).to.equal(0)
  })

  it('wait for a single timeout when Redis freezes, even 200 at once, and are then counted by the replica without waiting', async () => {
    await redis.freeze()
    const startMs = performance.now()
    const first = await inParallel(200, () => failures.count(ADDRESS))
    const firstMs = performance.now() - startMs
    const later = await inSequence(200, async (index) => (index % 2 ? failures.peek(ADDRESS) : (await failures.count(ADDRESS)).quota))
    const laterMs = performance.now() - startMs - firstMs
    console.error(`      frozen: 200 at once in ${firstMs.toFixed(0)} ms, 200 more in sequence in ${laterMs.toFixed(1)} ms`)
    expect(firstMs).to.be.below(1_500)
    expect(laterMs).to.be.below(1_500)
    expect(first.filter(({ admitted }) => admitted)).to.have.lengthOf(PER_MINUTE)
    for (const quota of later) expect(quota).to.include({ limit: PER_MINUTE, remaining: 0 })
  })

  it('share the circuit breaker with the quotas: when it is open, neither waits for Redis', async () => {
    await redis.freeze()
    await failures.count(ADDRESS)
    expect(replica.connection.breaker.isUp).to.equal(false)
    const startMs = performance.now()
    await inSequence(50, (index) => takeOne(replica.quotas, `key_${index}`, someQuotaRules()))
    await inSequence(50, () => failures.peek(ADDRESS))
    expect(performance.now() - startMs).to.be.below(1_000)
    expect(replica.changes).to.deep.equal([true, false])
  })

  it('are shared by all replicas again when Redis is available again', async () => {
    await inSequence(10, (index) => (index % 2 ? otherFailures : failures).count(ADDRESS))
    await redis.freeze()
    await Promise.all([failures, otherFailures].map((each) => each.count('192.0.2.2')))
    await redis.unfreeze()
    await Promise.all([untilUp(replica), untilUp(other)])
    for (const each of [failures, otherFailures]) expect((await each.peek(ADDRESS)).remaining).to.equal(PER_MINUTE - 10)
  })

  it('have one counter per IP address and minute, which expires within a minute', async () => {
    for (const address of ['192.0.2.1', '192.0.2.10', '2001:db8::/64']) await failures.count(address)
    clock.advanceSeconds(60)
    await otherFailures.count('192.0.2.1')
    const names = await observer.client.keys('petstore:failed-authentications*')
    expect(names).to.have.lengthOf(4)
    for (const name of names) {
      expect(await observer.client.get(name)).to.equal('1')
      expect(await observer.client.pttl(name)).to.be.within(1, 60_000)
    }
  })

  it('cost no command for the last 10,000 IP addresses that reached the limit, and one for an earlier one', async () => {
    await replica.close()
    replica = await aRedisReplica(redis.url, { clock, hasNoTimeout: true })
    const single = new RedisFailedAuthentications(replica.connection, 1, clock)
    const countFor = (index: number) => single.count(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`)
    for (let first = 0; first <= 10_000; first += 100) await inParallel(Math.min(100, 10_001 - first), (index) => countFor(first + index))
    const before = await countCommands(redis.url)
    for (const index of [1, 5_000, 10_000]) expect((await countFor(index)).admitted).to.equal(false)
    expect(await countCommands(redis.url)).to.equal(before)
    expect((await countFor(0)).admitted).to.equal(false)
    expect(await countCommands(redis.url)).to.be.above(before)
  })

  it('and quotas work on the same client: neither script replaces the other', async () => {
    expect((await takeOne(replica.quotas, 'key_one', someQuotaRules())).quota.minute.remaining).to.equal(59)
    await failures.count(ADDRESS)
    expect((await takeOne(replica.quotas, 'key_one', someQuotaRules())).quota.minute.remaining).to.equal(58)
    expect((await otherFailures.peek(ADDRESS)).remaining).to.equal(PER_MINUTE - 1)
  })

  it('are limited by each replica locally while Redis is down', async () => {
    await redis.kill()
    await Promise.all([untilUnavailable(replica), untilUnavailable(other)])
    const counted = await inSequence(40, () => failures.count(ADDRESS))
    expect(counted.filter(({ admitted }) => admitted)).to.have.lengthOf(PER_MINUTE)
  })
})
