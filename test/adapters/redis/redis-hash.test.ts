import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { CachedApiKeyVerifier } from '../../../src/adapters/memory/cached-api-key-verifier.js'
import { MemoryApiKeyStore } from '../../../src/adapters/memory/memory-api-key-store.js'
import { MemoryFailedAuthentications } from '../../../src/adapters/memory/memory-failed-authentications.js'
import { CryptoApiKeySecrets } from '../../../src/adapters/node/crypto-api-key-secrets.js'
import { SystemClock } from '../../../src/adapters/node/system-clock.js'
import { getMinutePhaseSeconds } from '../../../src/core/window.js'
import { makeAdmit } from '../../../src/core/use-cases/admit.js'
import { makeAuthenticate } from '../../../src/core/use-cases/authenticate.js'
import { anApiKey, anIssue, someBanRules, somePlans, someQuotaRules } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica, RedisReplicaOptions } from '../../support/redis-replica.js'
import { aRedisReplica, KEYS, RedisObserver, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { startFaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { until } from '../../support/until.js'
import { countAdmitted, requireCharge, inSequence, inParallel } from '../../support/verdicts.js'

const FREE = someQuotaRules()
const KEY = 'key_one'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The longest that a replica caches the record of a key, and a minute more. */
const KNOWN_MS = 60_000

describe('the hash of a key in Redis', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let observer: RedisObserver
  const open: RedisReplica[] = []

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
  })

  afterEach(async () => {
    await Promise.all(open.splice(0).map((replica) => replica.close()))
    observer.close()
  })

  after(() => redis?.stop())

  async function aReplica(options: RedisReplicaOptions = {}): Promise<RedisReplica> {
    const replica = await aRedisReplica(redis.url, { hasNoTimeout: true, ...options })
    open.push(replica)
    await untilUp(replica)
    return replica
  }

  const expiresInMs = (keyId = KEY) => observer.client.pttl(KEYS.quota(keyId))

  it('takes one EVALSHA for an admission, a rejection, a ban, a stale record and a refund', async () => {
    const clock = new MovableClock()
    const { quotas } = await aReplica({ clock })
    const rules = someQuotaRules({ limits: { minute: 3 }, ban: someBanRules({ graceMs: 0, minStrikes: 3 }) })
    // The first command of a connection loads the script.
    const first = await takeOne(quotas, KEY, rules)
    const commands = await watched(observer.client, async () => {
      await takeOne(quotas, KEY, rules)
      await quotas.refund(KEY, requireCharge(first), rules)
      const kinds = await inSequence(7, async () => {
        clock.advanceMs(1)
        return (await takeOne(quotas, KEY, rules)).kind
      })
      expect(kinds).to.deep.equal(['admitted', 'admitted', 'exhausted', 'exhausted', 'exhausted', 'banned', 'banned'])
      expect((await quotas.take(KEY, rules, { version: 0 })).kind).to.equal('stale')
    })
    expect(commands.map(([name, , ...args]) => [name, ...args.slice(0, 3)])).to.deep.equal(
      new Array<string[]>(10).fill(['evalsha', '2', 'petstore:epoch:{0}', 'petstore:quota:{0}:key_one']),
    )
  })

  it('is named after the key ID: neither the secret nor its hash reaches Redis', async () => {
    const clock = new SystemClock()
    const { quotas, control } = await aReplica()
    const secrets = new CryptoApiKeySecrets()
    const { secret, ...publicPart } = secrets.generate()
    const store = new MemoryApiKeyStore(clock)
    await store.insert(anApiKey('one', publicPart), anIssue())
    const failedAuthentications = new MemoryFailedAuthentications(5, clock)
    const apiKeyVerifier = new CachedApiKeyVerifier({ secrets, apiKeyStore: store, failedAuthentications, clock })
    const authenticate = makeAuthenticate({ apiKeyVerifier, failedAuthentications })
    const admit = makeAdmit({ authenticate, apiKeyVerifier, quotas, plans: somePlans() })
    const commands = await watched(observer.client, async () => {
      for (let count = 0; count < 70; count++) expect((await admit({ secret, address: '192.0.2.1' })).kind).to.equal('decided')
      await control.announce(publicPart.keyId, 2)
      await admit({ secret, address: '192.0.2.1' })
      await control.usage(publicPart.keyId, FREE)
      await control.unban(publicPart.keyId)
    })
    const sent = JSON.stringify([commands, await observer.client.keys('*')])
    expect(sent).to.include(`petstore:quota:{0}:${publicPart.keyId}`)
    for (const hidden of [secret, publicPart.secretHash, secret.slice(9, 39)]) expect(sent).not.to.include(hidden)
  })

  it('is decided by the clock of the server, and so is its usage, whatever the clock of the replica shows', async () => {
    const { quotas, control } = await aReplica({ localClock: new MovableClock(Date.UTC(2001, 0, 1)) })
    const before = await getTimeMs(observer.client)
    const { quota } = await takeOne(quotas, KEY, FREE)
    const usage = await control.usage(KEY, FREE)
    for (const { nowMs, day } of [quota, usage.quota]) {
      expect(nowMs).to.be.within(before, await getTimeMs(observer.client))
      expect(day).to.deep.equal({ limit: 1000, remaining: 999, resetSeconds: (Math.floor(nowMs / DAY_MS) + 1) * 86_400 })
    }
  })

  it('has the fields that deployed data has', async () => {
    const clock = new MovableClock()
    const { quotas } = await aReplica({ clock })
    const rules = someQuotaRules({ limits: { minute: 1 }, ban: someBanRules({ graceMs: 0, minStrikes: 2 }) })
    const take = async () => {
      clock.advanceMs(1)
      await takeOne(quotas, KEY, rules)
    }
    await inSequence(3, take)
    expect(await observer.client.hkeys(KEYS.quota(KEY))).to.have.members(['m', 'c', 'd', 'e', 's', 'f', 'g'])
    await take()
    expect(await observer.client.hkeys(KEYS.quota(KEY))).to.have.members(['m', 'c', 'd', 'e', 'b', 'l', 'g'])
  })

  for (const [what, rules, steps] of [
    ['of a Business key with heavy usage', someQuotaRules({ limits: { minute: 1000, day: 100_000 } }), [900, 900, 900, 900]],
    ['with an ended ban and strikes', someQuotaRules({ ban: someBanRules({ firstMs: 30_000 }) }), [61, 70, 61, 30]],
  ] as const) {
    it(`takes less than 200 bytes ${what}`, async () => {
      const clock = new MovableClock()
      const { quotas, control } = await aReplica({ clock })
      const keyId = new CryptoApiKeySecrets().generate().keyId
      for (const [index, count] of steps.entries()) {
        await inParallel(count, () => quotas.take(keyId, rules, { version: 12 }))
        clock.advanceMs(index === 1 ? 60_000 : 1_500)
      }
      await control.announce(keyId, 1_234)
      expect(await observer.client.object('ENCODING', KEYS.quota(keyId))).to.be.oneOf(['listpack', 'ziplist'])
      expect(await observer.client.memory('USAGE', KEYS.quota(keyId))).to.be.below(200)
    })
  }

  describe('expires', () => {
    it('at the end of the day, even after an announcement', async () => {
      const { quotas, control } = await aReplica({ clock: new MovableClock() })
      await takeOne(quotas, KEY, FREE)
      expect(await expiresInMs()).to.be.within(12 * HOUR_MS - 40_000, 12 * HOUR_MS - 30_000)
      await control.announce(KEY, 2)
      expect(await expiresInMs()).to.be.within(12 * HOUR_MS - 40_000, 12 * HOUR_MS - 30_000)
    })

    it('when its bans are forgotten, or a day after the ban is lifted', async () => {
      const clock = new MovableClock()
      const { quotas, control } = await aReplica({ clock })
      const rules = someQuotaRules({ ban: someBanRules({ firstMs: 2 * DAY_MS, longestMs: 4 * DAY_MS }) })
      await inParallel(61, () => takeOne(quotas, KEY, rules))
      clock.advanceMs(1_001)
      await inParallel(60, () => takeOne(quotas, KEY, rules))
      expect(await expiresInMs()).to.be.within(3 * DAY_MS - 10_000, 3 * DAY_MS)
      await control.unban(KEY)
      expect(await expiresInMs()).to.be.within(DAY_MS - 10_000, DAY_MS)
    })

    it('not before both windows of its last request end, in the last minutes of a day and the first of the next', async () => {
      const clock = new MovableClock(Date.UTC(2026, 10, 20, 23, 50, 0))
      const { quotas } = await aReplica({ clock })
      // Its minutes end half a minute after those of the clock, one of them after midnight.
      const keyId = Array.from({ length: 1_000 }, (_, index) => `key_${index}`).find((id) => getMinutePhaseSeconds(id) === 30) ?? ''
      for (let count = 1; count <= 40; count++) {
        const { quota } = await takeOne(quotas, keyId, FREE)
        const lifeMs = await expiresInMs(keyId)
        const windowsEndInMs = Math.max(quota.minute.resetSeconds, quota.day.resetSeconds) * 1000 - quota.nowMs
        expect(lifeMs, `after ${count}`).to.be.above(windowsEndInMs - 5_000)
        // Let the hash age by half a minute in Redis, too.
        await observer.client.pexpire(KEYS.quota(keyId), lifeMs - 30_000)
        clock.advanceSeconds(30)
      }
    })

    it('not before every replica has dropped older records of the key than the announced one', async () => {
      const clock = new MovableClock(Date.UTC(2026, 10, 20, 23, 59, 59))
      const { quotas, control } = await aReplica({ clock })
      await control.announce('key_unseen', 2)
      expect(await expiresInMs('key_unseen')).to.be.within(KNOWN_MS - 10_000, KNOWN_MS)
      await takeOne(quotas, KEY, FREE)
      await observer.client.pexpire(KEYS.quota(KEY), 5_000)
      await control.announce(KEY, 2)
      expect(await expiresInMs()).to.be.within(KNOWN_MS - 10_000, KNOWN_MS)
    })

    it('after any two operations in any order', async () => {
      const clock = new MovableClock()
      const { quotaHash } = (await aReplica({ clock })).connection
      const window = { minute: Math.floor(clock.nowMs() / 60_000), day: Math.floor(clock.nowMs() / DAY_MS) }
      const operations = {
        take: (keyId: string) => quotaHash.take(keyId, FREE, { version: 1 }),
        stale: (keyId: string) => quotaHash.take(keyId, FREE, { version: 0 }),
        reconcile: (keyId: string) => quotaHash.reconcile(keyId, FREE, { delta: { window, strikes: 70, used: { minute: 1, day: 1 } } }),
        peek: (keyId: string) => quotaHash.peek(keyId, FREE),
        unban: (keyId: string) => quotaHash.unban(keyId),
        announce: (keyId: string) => quotaHash.announce(keyId, 1),
      }
      for (const [first, one] of Object.entries(operations)) {
        for (const [second, other] of Object.entries(operations)) {
          const keyId = `key_${first}_${second}`
          for (const operation of [one, other]) {
            await operation(keyId)
            expect(await expiresInMs(keyId), keyId).to.not.equal(-1)
          }
        }
      }
    })

    it('or does not exist: showing the usage of an unused key stores nothing', async () => {
      const { control } = await aReplica()
      await control.usage('key_unused', FREE)
      expect(await observer.client.exists(KEYS.quota('key_unused'))).to.equal(0)
    })
  })

  for (const [what, happen, changes, lost] of [
    ['SCRIPT FLUSH', () => observer.client.script('FLUSH'), [true], 0],
    ['FLUSHALL', () => observer.client.flushall(), [true, false, true], 8],
  ] as const) {
    it(`survives ${what} under load: every request is admitted, and counted unless it was in flight`, async () => {
      const replica = await aReplica()
      const rules = someQuotaRules({ limits: { minute: 1e6, day: 1e6 } })
      const kinds = new Set<string>()
      let [isRunning, taken] = [true, 0]
      const load = inParallel(8, async (worker) => {
        while (isRunning) {
          kinds.add((await takeOne(replica.quotas, `key_${worker}`, rules)).kind)
          taken += 1
          // Decisions without Redis never wait.
          await new Promise((resolve) => setImmediate(resolve))
        }
      })
      await until('there is load', () => taken > 100)
      await happen()
      const before = taken
      await until('the load continues', () => taken > before + 100)
      isRunning = false
      await load
      expect([...kinds]).to.deep.equal(['admitted'])
      await untilUp(replica)
      expect(await replica.fallback.reportPendingUsage()).to.equal(0)
      expect(replica.changes).to.deep.equal(changes)
      const used = await Promise.all(Array.from({ length: 8 }, (_, worker) => observer.used(`key_${worker}`)))
      expect(used.reduce((sum, [, day]) => sum + day, 0)).to.be.within(taken - lost, taken)
    })
  }

  describe('in a failover', () => {
    it('is decided by the replica while its server is read-only, and by Redis again once the server is the primary', async () => {
      const clock = new MovableClock()
      const replica = await aRedisReplica(redis.url, { clock })
      open.push(replica)
      await inParallel(10, () => takeOne(replica.quotas, KEY, FREE))
      await observer.client.replicaof('127.0.0.1', '1')
      try {
        expect(countAdmitted(await inParallel(100, () => takeOne(replica.quotas, KEY, FREE)))).to.equal(50)
        expect(replica.connection.breaker.isUp).to.equal(false)
        expect(await observer.used(KEY)).to.deep.equal([10, 10])
      } finally {
        await observer.client.replicaof('NO', 'ONE')
      }
      await untilUp(replica)
      await until('the usage is reconciled', async () => (await observer.used(KEY))[0] === 60)
      expect(replica.changes).to.deep.equal([true, false, true])
      expect((await takeOne(replica.quotas, KEY, FREE)).kind).to.equal('exhausted')
    })

    it('continues on a promoted server at the same address: no request fails, is lost or is counted twice', async function () {
      const clock = new MovableClock()
      await observer.client.config('SET', 'repl-diskless-sync-delay', '0')
      const standby = await anOwnRedis(this, ['--replicaof', '127.0.0.1', new URL(redis.url).port])
      const proxy = await startFaultInjectionProxy(redis.url)
      const promoted = new RedisObserver(standby.url)
      const replica = await aRedisReplica(`redis://${proxy.address}`, { clock })
      open.push(replica)
      try {
        await until(
          'the standby follows',
          async () => (await promoted.client.info('replication')).includes('master_link_status:up'),
          15_000,
        )
        let admitted = countAdmitted(await inParallel(20, () => takeOne(replica.quotas, KEY, FREE)))
        await until('the standby has replicated the usage', async () => (await promoted.used(KEY))[0] === 20)
        proxy.stopForwarding()
        proxy.closeConnections()
        await untilUnavailable(replica)
        admitted += countAdmitted(await inParallel(15, () => takeOne(replica.quotas, KEY, FREE)))
        await promoted.client.replicaof('NO', 'ONE')
        proxy.resume(standby.url)
        await untilUp(replica)
        admitted += countAdmitted(await inParallel(100, () => takeOne(replica.quotas, KEY, FREE)))
        expect(admitted).to.equal(60)
        expect(await promoted.used(KEY)).to.deep.equal([60, 60])
      } finally {
        await replica.close()
        promoted.close()
        await proxy.close()
        await standby.stop()
      }
    })
  })
})

async function getTimeMs(client: Redis): Promise<number> {
  const [seconds, micros] = await client.time()
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}

/** Returns the commands that clients sent during `work`, without those that scripts ran. */
async function watched(client: Redis, work: () => Promise<void>): Promise<string[][]> {
  const commands: string[][] = []
  const monitor = await client.monitor()
  monitor.on('error', () => undefined)
  let isFinished = false
  monitor.on('monitor', (_time: string, args: string[], source: string) => {
    if (args[0] === 'echo' && args[1] === 'over') isFinished = true
    else if (source !== 'lua' && args[0] !== 'info') commands.push(args.map(String))
  })
  try {
    await work()
    await client.echo('over')
    await until('the monitor has received all commands', () => isFinished)
    return commands.map(([name = '', ...args]) => [name.toLowerCase(), ...args])
  } finally {
    monitor.disconnect()
  }
}
