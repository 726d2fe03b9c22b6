import { expect } from 'chai'
import { RedisFailedAuthentications } from '../../../src/adapters/redis/redis-failed-authentications.js'
import { someQuotaRules } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { countCommands } from '../../support/engines/redis-client.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica, Onlooker, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { inSequence, times } from '../../support/verdicts.js'

const ADDRESS = '192.0.2.1'
const PER_MINUTE = 30

describe('failed authentications counted in Redis', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let onlooker: Onlooker
  let clock: MovableClock
  let replicas: RedisReplica[]
  let failures: RedisFailedAuthentications[]

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    onlooker = new Onlooker(redis.url)
    await onlooker.client.flushall()
    clock = new MovableClock()
    replicas = await times(2, () => aRedisReplica(redis.url, { clock }))
    await Promise.all(replicas.map((replica) => untilUp(replica)))
    failures = replicas.map(({ connection }) => new RedisFailedAuthentications(connection, PER_MINUTE, clock))
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all(replicas.map((replica) => replica.close()))
    onlooker.close()
  })

  after(() => redis?.stop())

  const port = (index: number) => failures[index % 2] ?? Promise.reject(new Error('There is no such replica'))

  it('are those of all replicas together', async () => {
    const counted = await times(100, async (index) => (await port(index)).count(ADDRESS))
    expect(counted.filter(({ admitted }) => admitted)).to.have.lengthOf(PER_MINUTE)
    for (const index of [0, 1]) expect((await (await port(index)).peek(ADDRESS)).remaining).to.equal(0)
  })

  it('let 200 of them wait for one time-out together when Redis freezes, and none after that', async () => {
    await redis.freeze()
    const beganMs = performance.now()
    const first = await times(200, async () => (await port(0)).count(ADDRESS))
    const firstMs = performance.now() - beganMs
    const later = await inSequence(200, async (index) =>
      index % 2 ? (await port(0)).peek(ADDRESS) : (await (await port(0)).count(ADDRESS)).quota,
    )
    const laterMs = performance.now() - beganMs - firstMs
    console.error(`      frozen: 200 at once in ${firstMs.toFixed(0)} ms, 200 more in sequence in ${laterMs.toFixed(1)} ms`)
    expect(firstMs).to.be.below(1_500)
    expect(laterMs).to.be.below(1_500)
    expect(first.filter(({ admitted }) => admitted)).to.have.lengthOf(PER_MINUTE)
    for (const quota of later) expect(quota).to.include({ limit: PER_MINUTE, remaining: 0 })
  })

  it('are not asked of Redis when quotas have found it away, nor the other way round: one breaker is for both', async () => {
    await redis.freeze()
    const [replica] = replicas
    if (!replica) throw new Error('There is no such replica')
    await (await port(0)).count(ADDRESS)
    expect(replica.connection.breaker.isUp).to.equal(false)
    const beganMs = performance.now()
    await inSequence(50, (index) => takeOne(replica.quotas, `key_${index}`, someQuotaRules()))
    await inSequence(50, async () => (await port(0)).peek(ADDRESS))
    expect(performance.now() - beganMs).to.be.below(1_000)
    expect(replica.changes).to.deep.equal([true, false])
  })

  it('are those of all replicas again when Redis is back', async () => {
    await inSequence(10, async (index) => (await port(index)).count(ADDRESS))
    await redis.freeze()
    await Promise.all([0, 1].map(async (index) => (await port(index)).count('192.0.2.2')))
    await redis.thaw()
    await Promise.all(replicas.map((replica) => untilUp(replica)))
    for (const index of [0, 1]) expect((await (await port(index)).peek(ADDRESS)).remaining).to.equal(PER_MINUTE - 10)
  })

  it('leave nothing in Redis that does not expire, and neither an address nor a minute shares its count with another', async () => {
    for (const address of ['192.0.2.1', '192.0.2.10', '2001:db8::/64']) await (await port(0)).count(address)
    clock.advanceSeconds(60)
    await (await port(1)).count('192.0.2.1')
    const names = (await onlooker.client.keys('failed-authentications*')).toSorted()
    expect(names).to.have.lengthOf(4)
    for (const name of names) {
      expect(await onlooker.client.get(name)).to.equal('1')
      expect(await onlooker.client.pttl(name)).to.be.within(1, 60_000)
    }
  })

  it('that reach the limit from more than 10,000 IP addresses are remembered for the last 10,000 of them', async () => {
    const replica = await aRedisReplica(redis.url, { clock, isPatient: true })
    replicas.push(replica)
    const { connection } = replica
    const single = new RedisFailedAuthentications(connection, 1, clock)
    const toClientAddress = (index: number) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`
    for (let first = 0; first < 10_001; first += 100) {
      const batch = Math.min(100, 10_001 - first)
      await times(batch, async (index) => single.count(toClientAddress(first + index)))
    }
    const before = await countCommands(redis.url)
    for (const index of [1, 5_000, 10_000]) expect((await single.count(toClientAddress(index))).admitted).to.equal(false)
    expect(await countCommands(redis.url)).to.equal(before)
    expect((await single.count(toClientAddress(0))).admitted).to.equal(false)
    expect(await countCommands(redis.url)).to.be.above(before)
  })

  it('go on where two limiters of a process share one client, and a limiter next to the quotas leaves their script as it is', async () => {
    const [replica] = replicas
    if (!replica) throw new Error('There is no such replica')
    expect((await takeOne(replica.quotas, 'key_one', someQuotaRules())).quota.minute.remaining).to.equal(59)
    await (await port(0)).count(ADDRESS)
    expect((await takeOne(replica.quotas, 'key_one', someQuotaRules())).quota.minute.remaining).to.equal(58)
    expect((await (await port(0)).peek(ADDRESS)).remaining).to.equal(PER_MINUTE - 1)
  })

  it('are counted by a replica alone whose Redis is gone', async () => {
    await redis.kill()
    await Promise.all(replicas.map((replica) => untilUnavailable(replica)))
    const counted = await inSequence(40, async () => (await port(0)).count(ADDRESS))
    expect(counted.filter(({ admitted }) => admitted)).to.have.lengthOf(PER_MINUTE)
  })
})
