import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { CachedApiKeyVerifier } from '../../../src/adapters/memory/cached-api-key-verifier.js'
import { MemoryApiKeyStore } from '../../../src/adapters/memory/memory-api-key-store.js'
import { MemoryFailedAuthentications } from '../../../src/adapters/memory/memory-failed-authentications.js'
import { CryptoApiKeySecrets } from '../../../src/adapters/node/crypto-api-key-secrets.js'
import { SystemClock } from '../../../src/adapters/node/system-clock.js'
import { quotaKey } from '../../../src/adapters/redis/quota-hash.js'
import { minutePhaseSeconds } from '../../../src/core/window.js'
import { makeAdmit } from '../../../src/core/use-cases/admit.js'
import { makeAuthenticate } from '../../../src/core/use-cases/authenticate.js'
import { anApiKey, someBanRules, somePlans, someQuotaRules } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica, RedisReplicaOptions } from '../../support/redis-replica.js'
import { aRedisReplica, Onlooker, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { anUnreliableLine } from '../../support/unreliable-line.js'
import { until } from '../../support/until.js'
import { admittedOf, chargeOf, inSequence, times } from '../../support/verdicts.js'

const FREE = someQuotaRules()
const KEY = 'key_one'
const DAY_MS = 86_400_000
/** The longest that a replica remembers a record of a key, and a minute more. */
const KNOWN_MS = 60_000

describe('the hash of a key in Redis', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let onlooker: Onlooker
  const open: RedisReplica[] = []

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    onlooker = new Onlooker(redis.url)
    await onlooker.client.flushall()
  })

  afterEach(async () => {
    await Promise.all(open.splice(0).map((replica) => replica.close()))
    onlooker.close()
  })

  after(() => redis?.stop())

  async function aReplica(options: RedisReplicaOptions = {}): Promise<RedisReplica> {
    const replica = await aRedisReplica(redis.url, { isPatient: true, ...options })
    open.push(replica)
    await untilUp(replica)
    return replica
  }

  /** The ends of what is known of the key, as the server's clock and the given one have them. */
  const livesMs = () => onlooker.client.pttl(quotaKey(KEY))

  describe('is worked on by one command', () => {
    it('for an admission, a rejection, a ban, an outdated record, a refund: each is one EVALSHA on the key', async () => {
      const clock = new MovableClock()
      const { quotas } = await aReplica({ clock })
      const rules = someQuotaRules({ limits: { minute: 3 }, ban: someBanRules({ graceMs: 0, minStrikes: 3 }) })
      // The first command of a connection brings the script along.
      const first = await takeOne(quotas, KEY, rules)
      const commands = await watched(onlooker.client, async () => {
        await takeOne(quotas, KEY, rules)
        await quotas.refund(KEY, chargeOf(first), rules)
        const kinds = await inSequence(7, async () => {
          clock.advanceMs(1)
          return (await takeOne(quotas, KEY, rules)).kind
        })
        expect(kinds).to.deep.equal(['admitted', 'admitted', 'exhausted', 'exhausted', 'exhausted', 'banned', 'banned'])
        expect((await quotas.take(KEY, rules, { version: 0 })).kind).to.equal('outdated')
      })
      expect(commands.map(([name, , keys, key]) => [name, keys, key])).to.deep.equal(
        new Array<string[]>(10).fill(['evalsha', '1', 'quota:{key_one}']),
      )
    })

    it('for each of 300 decisions that come at the same time', async () => {
      const { quotas } = await aReplica()
      await takeOne(quotas, KEY, FREE)
      await onlooker.client.config('RESETSTAT')
      await times(300, (index) => takeOne(quotas, `key_${index % 100}`, FREE))
      const stats = await onlooker.client.info('commandstats')
      expect(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1]).to.equal('300')
      expect(stats).not.to.include('cmdstat_eval:')
    })
  })

  it('bears the name of the key and nothing of its secret: neither the secret nor its hash ever reaches Redis', async () => {
    const clock = new SystemClock()
    const { quotas, control } = await aReplica()
    const secrets = new CryptoApiKeySecrets()
    const { secret, ...publicPart } = secrets.generate()
    const store = new MemoryApiKeyStore(clock)
    await store.insert(anApiKey('one', publicPart))
    const failedAuthentications = new MemoryFailedAuthentications(5, clock)
    const apiKeyVerifier = new CachedApiKeyVerifier({ secrets, apiKeyStore: store, failedAuthentications, clock })
    const authenticate = makeAuthenticate({ apiKeyVerifier, failedAuthentications })
    const admit = makeAdmit({ authenticate, apiKeyVerifier, quotas, plans: somePlans() })
    const commands = await watched(onlooker.client, async () => {
      for (let count = 0; count < 70; count++) expect((await admit({ secret, address: '192.0.2.1' })).kind).to.equal('decided')
      await control.announce(publicPart.keyId, 2)
      await admit({ secret, address: '192.0.2.1' })
      await control.usage(publicPart.keyId, FREE)
      await control.unban(publicPart.keyId)
    })
    const said = JSON.stringify(commands)
    expect(said).to.include(`quota:{${publicPart.keyId}}`)
    for (const hidden of [secret, publicPart.secretHash, secret.slice(9, 39)]) expect(said).not.to.include(hidden)
    const kept = (await onlooker.client.keys('*')).join()
    expect(kept).to.include(publicPart.keyId)
    expect(kept).not.to.include(publicPart.secretHash)
  })

  it('is decided by the clock of the server where no other is given, whatever the clock of the replica says', async () => {
    const { quotas } = await aReplica({ localClock: { nowMs: () => Date.UTC(2001, 0, 1) } })
    const before = await timeOf(onlooker.client)
    const { quota } = await takeOne(quotas, KEY, FREE)
    expect(quota.nowMs).to.be.within(before, await timeOf(onlooker.client))
    expect(quota.day.resetSeconds).to.equal((Math.floor(quota.nowMs / DAY_MS) + 1) * 86_400)
  })

  describe('takes up less than 200 bytes', () => {
    const figures: string[] = []
    after(() => console.error(`      bytes: ${figures.join(', ')}`))

    for (const [state, rules, steps] of [
      ['of a key used once', FREE, [1]],
      ['of a Business key in heavy use', someQuotaRules({ limits: { minute: 1000, day: 100_000 } }), [900, 900, 900, 900]],
      ['with strikes', FREE, [61, 30]],
      ['with a ban', FREE, [61, 70]],
      ['with a ban, and a minute later', someQuotaRules({ ban: someBanRules({ firstMs: 30_000 }) }), [61, 70, 61, 30]],
    ] as const) {
      it(state, async () => {
        const clock = new MovableClock()
        const { quotas, control } = await aReplica({ clock })
        const keyId = new CryptoApiKeySecrets().generate().keyId
        for (const [index, count] of steps.entries()) {
          await times(count, () => quotas.take(keyId, rules, { version: 12 }))
          clock.advanceMs(index === 1 ? 60_000 : 1_500)
        }
        await control.announce(keyId, 1_234)
        const bytes = (await onlooker.client.memory('USAGE', quotaKey(keyId))) ?? Number.NaN
        figures.push(`${state} ${bytes}`)
        expect(await onlooker.client.object('ENCODING', quotaKey(keyId))).to.be.oneOf(['listpack', 'ziplist'])
        expect(bytes).to.be.below(200)
      })
    }
  })

  describe('expires by itself', () => {
    it('when its day and its minute are over', async () => {
      const clock = new MovableClock()
      const { quotas } = await aReplica({ clock })
      await takeOne(quotas, KEY, FREE)
      expect(await livesMs()).to.be.within(12 * 3_600_000 - 40_000, 12 * 3_600_000 - 30_000)
    })

    it('not before the minute that reaches over midnight is over', async () => {
      const clock = new MovableClock(Date.UTC(2026, 10, 20, 23, 59, 59))
      const { quotas } = await aReplica({ clock })
      await takeOne(quotas, KEY, FREE)
      expect(await livesMs()).to.be.within(50_000, 61_000)
    })

    it('after a ban when the next would be a first one again, and after the day again when the ban was lifted', async () => {
      const clock = new MovableClock()
      const { quotas, control } = await aReplica({ clock })
      const rules = someQuotaRules({ ban: someBanRules({ firstMs: 2 * DAY_MS, longestMs: 4 * DAY_MS }) })
      await times(61, () => takeOne(quotas, KEY, rules))
      clock.advanceMs(1_001)
      await times(60, () => takeOne(quotas, KEY, rules))
      expect(await livesMs()).to.be.within(3 * DAY_MS - 10_000, 3 * DAY_MS)
      await control.unban(KEY)
      expect(await livesMs()).to.be.within(11 * 3_600_000, 12 * 3_600_000)
    })

    it('not before both windows of its last request are over, in the last minutes of a day and the first of the next', async () => {
      const clock = new MovableClock(Date.UTC(2026, 10, 20, 23, 50, 0))
      const { quotas } = await aReplica({ clock })
      // Its minutes end half a minute after those of the clock, one of them after midnight.
      const keyId = Array.from({ length: 1_000 }, (_, index) => `key_${index}`).find((id) => minutePhaseSeconds(id) === 30) ?? ''
      for (let count = 1; count <= 40; count++) {
        const { quota } = await takeOne(quotas, keyId, FREE)
        const lifeMs = await onlooker.client.pttl(quotaKey(keyId))
        const lastMs = Math.max(quota.minute.resetSeconds, quota.day.resetSeconds) * 1000 - quota.nowMs
        expect(lifeMs, `after ${count}`).to.be.above(lastMs - 5_000)
        // For the server, too, half a minute passes.
        await onlooker.client.pexpire(quotaKey(keyId), lifeMs - 30_000)
        clock.advanceSeconds(30)
      }
    })

    it('no earlier for what is announced of it', async () => {
      const clock = new MovableClock()
      const { quotas, control } = await aReplica({ clock })
      await takeOne(quotas, KEY, FREE)
      await control.announce(KEY, 2)
      expect(await livesMs()).to.be.within(12 * 3_600_000 - 40_000, 12 * 3_600_000 - 30_000)
    })

    it('with an announced version not before every replica has forgotten the older record', async () => {
      const clock = new MovableClock(Date.UTC(2026, 10, 20, 23, 59, 59))
      const { quotas, control } = await aReplica({ clock })
      await control.announce('key_unseen', 2)
      expect(await onlooker.client.pttl(quotaKey('key_unseen'))).to.be.within(KNOWN_MS - 10_000, KNOWN_MS)
      await takeOne(quotas, KEY, FREE)
      await onlooker.client.pexpire(quotaKey(KEY), 5_000)
      await control.announce(KEY, 2)
      expect(await livesMs()).to.be.within(KNOWN_MS - 10_000, KNOWN_MS)
    })

    it('after whatever is done to it, in whichever order: there is none that lives for ever', async () => {
      const clock = new MovableClock()
      const { connection } = await aReplica({ clock })
      const { quotaHash } = connection
      const window = { minute: Math.floor(clock.nowMs() / 60_000), day: Math.floor(clock.nowMs() / DAY_MS) }
      const steps = {
        take: (keyId: string) => quotaHash.take(keyId, FREE, { version: 1 }),
        outdated: (keyId: string) => quotaHash.take(keyId, FREE, { version: 0 }),
        reconcile: (keyId: string) => quotaHash.reconcile(keyId, FREE, { window, strikes: 70, used: { minute: 1, day: 1 } }),
        refund: (keyId: string) => quotaHash.refund(keyId, FREE, window),
        peek: (keyId: string) => quotaHash.peek(keyId, FREE),
        unban: (keyId: string) => quotaHash.unban(keyId),
        announce: (keyId: string) => quotaHash.announce(keyId, 1),
      }
      for (const [first, one] of Object.entries(steps)) {
        for (const [second, two] of Object.entries(steps)) {
          const keyId = `key_${first}_${second}`
          for (const step of [one, two]) {
            await step(keyId)
            expect(await onlooker.client.pttl(quotaKey(keyId)), keyId).to.not.equal(-1)
          }
        }
      }
    })

    it('leaves nothing behind of a look at a key that was never seen, nor of lifting a ban that it never had', async () => {
      const { control } = await aReplica()
      await control.usage('key_unseen', FREE)
      await control.unban('key_unseen')
      expect(await onlooker.client.exists(quotaKey('key_unseen'))).to.equal(0)
    })
  })

  describe('in the middle of traffic', () => {
    async function throughout(replica: RedisReplica, event: () => Promise<unknown>): Promise<{ kinds: Set<string>; taken: number }> {
      const kinds = new Set<string>()
      let [goesOn, taken] = [true, 0]
      const traffic = times(8, async (worker) => {
        while (goesOn) {
          kinds.add((await takeOne(replica.quotas, `key_${worker}`, someQuotaRules({ limits: { minute: 1e6, day: 1e6 } }))).kind)
          taken += 1
        }
      })
      await until('there is traffic', () => taken > 100)
      await event()
      const then = taken
      await until('there is traffic again', () => taken > then + 100)
      goesOn = false
      await traffic
      return { kinds, taken }
    }

    it('SCRIPT FLUSH is noticed by nobody: not one decision is lost or made here', async () => {
      const replica = await aReplica()
      const { kinds, taken } = await throughout(replica, () => onlooker.client.script('FLUSH'))
      expect([...kinds]).to.deep.equal(['admitted'])
      expect(replica.changes).to.deep.equal([true])
      const used = await Promise.all(Array.from({ length: 8 }, (_, worker) => onlooker.used(`key_${worker}`)))
      expect(used.reduce((sum, [, day]) => sum + day, 0)).to.equal(taken)
    })

    it('FLUSHALL is an empty hash to the next request, and no error', async () => {
      const replica = await aReplica()
      const { kinds } = await throughout(replica, () => onlooker.client.flushall())
      expect([...kinds]).to.deep.equal(['admitted'])
      expect(replica.changes).to.deep.equal([true])
    })

    it('a hash that somebody spoilt is decided here, and no error', async () => {
      const replica = await aReplica()
      await takeOne(replica.quotas, KEY, FREE)
      await onlooker.client.set(quotaKey(KEY), 'spoilt')
      expect((await takeOne(replica.quotas, KEY, FREE)).kind).to.equal('admitted')
    })
  })

  describe('when the server fails over', () => {
    it('goes on with a primary that becomes a replica, decided here, and by Redis again once it is the primary', async () => {
      const clock = new MovableClock()
      const replica = await aRedisReplica(redis.url, { clock })
      open.push(replica)
      await times(10, () => takeOne(replica.quotas, KEY, FREE))
      await onlooker.client.replicaof('127.0.0.1', '1')
      try {
        expect(admittedOf(await times(100, () => takeOne(replica.quotas, KEY, FREE)))).to.equal(50)
        expect(replica.connection.breaker.isUp).to.equal(false)
        expect(await onlooker.used(KEY)).to.deep.equal([10, 10])
      } finally {
        await onlooker.client.replicaof('NO', 'ONE')
      }
      await untilUp(replica)
      await until('it was told', async () => (await onlooker.used(KEY))[0] === 60)
      expect(replica.changes).to.deep.equal([true, false, true])
      expect((await takeOne(replica.quotas, KEY, FREE)).kind).to.equal('exhausted')
    })

    it('goes on with a replica that is promoted at the same address: no request is lost or counted twice, none errs', async function () {
      const clock = new MovableClock()
      await onlooker.client.config('SET', 'repl-diskless-sync-delay', '0')
      const standby = await anOwnRedis(this, ['--replicaof', '127.0.0.1', new URL(redis.url).port])
      const line = await anUnreliableLine(redis.url)
      const promoted = new Onlooker(standby.url)
      const replica = await aRedisReplica(line.url, { clock })
      open.push(replica)
      try {
        await until('it follows', async () => (await promoted.client.info('replication')).includes('master_link_status:up'), 15_000)
        let admitted = admittedOf(await times(20, () => takeOne(replica.quotas, KEY, FREE)))
        await until('it has followed', async () => (await promoted.used(KEY))[0] === 20)
        line.fallSilent()
        line.cut()
        await untilUnavailable(replica)
        admitted += admittedOf(await times(15, () => takeOne(replica.quotas, KEY, FREE)))
        await promoted.client.replicaof('NO', 'ONE')
        line.pass(standby.url)
        await untilUp(replica)
        admitted += admittedOf(await times(100, () => takeOne(replica.quotas, KEY, FREE)))
        expect(admitted).to.equal(60)
        expect(await promoted.used(KEY)).to.deep.equal([60, 60])
      } finally {
        await replica.close()
        promoted.close()
        await line.close()
        await standby.stop()
      }
    })
  })

  it('counts 2,000 requests of 20 keys on two replicas exactly, by the hash and by what is left', async () => {
    const both = [await aReplica(), await aReplica()]
    const rules = someQuotaRules({ limits: { minute: 100_000, day: 200_000 } })
    await inSequence(10, () => times(200, (index) => takeOne((both[index % 2] ?? both[0])?.quotas ?? failed(), `key_${index % 20}`, rules)))
    for (let key = 0; key < 20; key++) expect((await onlooker.used(`key_${key}`))[1]).to.equal(100)
  })
})

function failed(): never {
  throw new Error('There is no such replica')
}

async function timeOf(client: Redis): Promise<number> {
  const [seconds, micros] = await client.time()
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}

/** The commands that clients sent meanwhile, without those that scripts ran. */
async function watched(client: Redis, work: () => Promise<void>): Promise<string[][]> {
  const commands: string[][] = []
  const monitor = await client.monitor()
  monitor.on('error', () => undefined)
  let isOver = false
  monitor.on('monitor', (_time: string, args: string[], source: string) => {
    if (args[0] === 'echo' && args[1] === 'over') isOver = true
    else if (source !== 'lua' && args[0] !== 'info') commands.push(args.map(String))
  })
  try {
    await work()
    await client.echo('over')
    await until('all was seen', () => isOver)
    return commands.map(([name = '', ...args]) => [name.toLowerCase(), ...args])
  } finally {
    monitor.disconnect()
  }
}
