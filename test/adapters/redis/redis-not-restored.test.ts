import { expect } from 'chai'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisConnection, aRedisReplica, KEYS, RedisObserver, untilUp } from '../../support/redis-replica.js'
import { RedisQuotaControl } from '../../../src/adapters/redis/redis-quota-control.js'
import { takeOne } from '../../support/take-one.js'
import { until } from '../../support/until.js'
import { inSequence } from '../../support/verdicts.js'

const BANNING = someQuotaRules({ limits: { minute: 2, day: 10 }, ban: someBanRules({ graceMs: 0, minStrikes: 2 }) })
const KEY = 'key_one'

describe('what a replica knows of a key is not restored', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let observer: RedisObserver
  let clock: MovableClock
  let knowing: RedisReplica
  let other: RedisReplica

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    clock = new MovableClock()
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
    knowing = await aRedisReplica(redis.url, { clock, replicas: 2, cachedMs: 0 })
    other = await aRedisReplica(redis.url, { clock, replicas: 2, cachedMs: 0 })
  })

  afterEach(async () => {
    await Promise.all([knowing.close(), other.close()])
    observer.close()
  })

  after(() => redis?.stop())

  /** Only `knowing` learns of the ban. */
  async function banKey(): Promise<void> {
    await inSequence(5, () => {
      clock.advanceMs(1)
      return takeOne(knowing.quotas, KEY, BANNING)
    })
    expect((await observer.hash(KEY)).banLevel).to.equal(1)
  }

  /** Both replicas notice, because they send a request. */
  async function untilBothHaveRestored(): Promise<void> {
    for (const replica of [other, knowing]) {
      await takeOne(replica.quotas, 'key_two', BANNING)
      await until('the replica has restored', () => replica.restored.length > 0 && replica.connection.breaker.isUp)
    }
  }

  it('after an operator has deleted the hash of the key', async () => {
    await banKey()
    await takeOne(knowing.quotas, 'key_two', BANNING)
    await observer.client.del(KEYS.quota(KEY))
    expect(await takeOne(knowing.quotas, KEY, BANNING)).to.nested.include({ kind: 'admitted', 'quota.day.remaining': 9 })
    expect(await observer.hash(KEY))
      .to.include({ minuteUsed: 1 })
      .and.not.to.have.any.keys('bannedUntilMs', 'banLevel')
    expect([knowing.changes, knowing.restored]).to.deep.equal([[true], []])
  })

  it('if it is a ban that an operator has lifted, although the replica has not noticed that before Redis is emptied', async () => {
    await banKey()
    expect(await other.control.unban(KEY)).to.equal('lifted')
    await takeOne(other.quotas, KEY, BANNING)
    await observer.client.flushall()
    await untilBothHaveRestored()
    expect((await takeOne(knowing.quotas, KEY, BANNING)).kind).to.equal('exhausted')
    expect(await observer.hash(KEY)).to.not.have.any.keys('bannedUntilMs', 'banLevel')
  })

  it('if it is a ban that an operator has lifted on the empty Redis, before the replicas have restored anything', async () => {
    await banKey()
    await observer.client.flushall()
    const command = aRedisConnection(redis.url, clock)
    await command.connect()
    try {
      expect(await new RedisQuotaControl(command).unban(KEY)).to.equal('not-banned')
    } finally {
      await command.close()
    }
    await untilBothHaveRestored()
    await untilUp(knowing)
    expect((await takeOne(knowing.quotas, KEY, BANNING)).kind).to.equal('exhausted')
    expect(await observer.hash(KEY))
      .to.include({ minuteUsed: 2, dayUsed: 2 })
      .and.not.to.have.any.keys('bannedUntilMs', 'banLevel')
  })

  it('if its windows have ended and its ban is forgotten', async () => {
    await banKey()
    clock.advanceMs(3 * 86_400_000)
    await observer.client.flushall()
    await untilBothHaveRestored()
    expect(await observer.client.exists(KEYS.quota(KEY))).to.equal(0)
  })
})
