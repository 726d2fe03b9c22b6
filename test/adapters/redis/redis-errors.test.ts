import { expect } from 'chai'
import { ReplyError } from 'ioredis'
import { isServerState } from '../../../src/adapters/redis/redis-errors.js'
import { someQuotaRules } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica, KEYS, RedisObserver, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'

const FREE = someQuotaRules()

describe('an error of Redis', () => {
  for (const [message, isState] of [
    ['LOADING Redis is loading the dataset in memory', true],
    ["READONLY You can't write against a read only replica.", true],
    ["READONLY You can't write against a read only replica. script: 6f2a, on @user_script:20.", true],
    ["ERR Error running script (call to f_6f2a): @user_script:20: -READONLY You can't write against a read only replica.", true],
    ['CLUSTERDOWN Hash slot not served', true],
    ['MASTERDOWN Link with MASTER is down', true],
    ["OOM command not allowed when used memory > 'maxmemory'.", true],
    ['MISCONF Redis is configured to save RDB snapshots', true],
    ['NOREPLICAS Not enough good replicas to write.', true],
    ['NOSCRIPT No matching script.', true],
    ['BUSY Redis is busy running a script.', true],
    ['NOAUTH Authentication required.', true],
    ["NOPERM this user has no permissions to run the 'evalsha' command", true],
    ['TRYAGAIN Multiple keys request during rehashing of slot', true],
    ['UNBLOCKED force unblock from blocking operation', true],
    ['WRONGTYPE Operation against a key holding the wrong kind of value', false],
    ['ERR value is not an integer or out of range', false],
    ['ERR user_script:9: attempt to compare nil with number', false],
  ] as const) {
    it(`${isState ? 'opens the breaker' : 'concerns one key'}: ${message}`, () => {
      expect(isServerState(new ReplyError(message))).to.equal(isState)
    })
  }

  it('that is not a reply opens the breaker', () => {
    expect(isServerState(new Error('connect ECONNREFUSED'))).to.equal(true)
  })
})

describe('the breaker of a real Redis', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let observer: RedisObserver
  let replica: RedisReplica

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
    replica = await aRedisReplica(redis.url)
    await untilUp(replica)
  })

  afterEach(async () => {
    await replica.close()
    observer.close()
  })

  after(() => redis?.stop())

  it('stays closed if Redis rejects the command of one key, and reports the error', async () => {
    const { connection } = replica
    await observer.client.set('text', 'no number')
    const failed = connection.breaker.call((client) => client.incr('text'), 0)
    expect(await failed.catch((error: unknown) => error)).to.have.property('maybeExecuted', false)
    expect(replica.rejections.map(String)).to.deep.equal(['ReplyError: ERR value is not an integer or out of range'])
    expect((await takeOne(replica.quotas, 'key_one', FREE)).kind).to.equal('admitted')
    expect(replica.changes).to.deep.equal([true])
  })

  for (const [what, [name, ...begin], end] of [
    ['has no memory left', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
    ['is a replica of an unreachable primary', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
    ['has too few replicas', ['CONFIG', 'SET', 'min-replicas-to-write', '1'], ['CONFIG', 'SET', 'min-replicas-to-write', '0']],
  ] as const) {
    it(`opens while Redis ${what}, and closes afterwards`, async () => {
      await takeOne(replica.quotas, 'key_one', FREE)
      await observer.client.call(name, ...begin)
      try {
        expect((await takeOne(replica.quotas, 'key_one', FREE)).kind).to.equal('admitted')
        await untilUnavailable(replica)
      } finally {
        await observer.client.call(end[0], ...end.slice(1))
      }
      await untilUp(replica)
      expect(await replica.fallback.reportPendingUsage()).to.equal(0)
      expect(await observer.used('key_one')).to.deep.equal([2, 2])
      expect([replica.changes, replica.rejections]).to.deep.equal([[true, false, true], []])
      expect(await observer.client.exists(KEYS.epoch(0))).to.equal(1)
    })
  }
})
