import { expect } from 'chai'
import { OperatorError } from '../../../src/core/errors.js'
import { rejection } from '../../contracts/rejection.js'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import type { RedisDatabase } from '../../support/engines/redis-engine.js'
import { aRedisDatabase } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica, KEYS, RedisObserver, untilUp } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { inParallel, inSequence, requireCharge } from '../../support/verdicts.js'

const FREE = someQuotaRules()
const BANNING = someQuotaRules({ limits: { minute: 2 }, ban: someBanRules({ graceMs: 0, minStrikes: 2 }) })
const KEY = 'key_one'
const HASH = KEYS.quota(KEY)

type Client = RedisObserver['client']

const CORRUPTIONS: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  'is a string': (client) => client.set(HASH, 'corrupt'),
  'is a list': (client) => client.multi().del(HASH).rpush(HASH, 'corrupt').exec(),
  ...Object.fromEntries(
    ['text', '', '-1', 'nan', 'inf', '1.5', '9007199254740993', '1e400'].map((value) => [
      `has the count ${JSON.stringify(value)}`,
      (client: Client) => client.hset(HASH, 'c', value),
    ]),
  ),
  'has a ban that is no number': (client) => client.hset(HASH, 'b', 'forever'),
}

describe('a corrupt hash of a key', function () {
  this.timeout(20_000)
  let database: RedisDatabase
  let observer: RedisObserver
  let replica: RedisReplica
  let clock: MovableClock

  before(async function () {
    database = await aRedisDatabase(this)
  })

  beforeEach(async () => {
    await database.flush()
    observer = new RedisObserver(database.url)
    clock = new MovableClock()
    replica = await aRedisReplica(database.url, { clock, cachedMs: 0 })
    await untilUp(replica)
  })

  afterEach(async () => {
    await replica.close()
    observer.close()
  })

  after(() => database?.release())

  for (const [what, corrupt] of Object.entries(CORRUPTIONS)) {
    it(`that ${what} is repaired from what the replica knows with the next request, and reported once`, async () => {
      await inSequence(7, () => takeOne(replica.quotas, KEY, FREE))
      await takeOne(replica.quotas, 'key_two', FREE)
      await corrupt(observer.client)
      const [verdict, other] = await inParallel(2, (index) => takeOne(replica.quotas, index ? 'key_two' : KEY, FREE))
      expect(verdict).to.nested.include({ kind: 'admitted', 'quota.minute.remaining': 52, 'quota.day.remaining': 992 })
      expect(other).to.nested.include({ kind: 'admitted', 'quota.minute.remaining': 58 })
      await takeOne(replica.quotas, KEY, FREE)
      expect(await observer.used(KEY)).to.deep.equal([9, 9])
      expect(await observer.client.pttl(HASH)).to.be.above(0)
      expect([replica.corrupt, replica.rejections, replica.changes]).to.deep.equal([[KEY], [], [true]])
    })
  }

  it('is repaired by a refund, which is counted', async () => {
    const [first] = await inSequence(7, () => takeOne(replica.quotas, KEY, FREE))
    await observer.client.set(HASH, 'corrupt')
    expect((await replica.quotas.refund(KEY, requireCharge(first), FREE)).day.remaining).to.equal(994)
  })

  it('is repaired by a read of the usage, which returns what the replica knows', async () => {
    await inSequence(7, () => takeOne(replica.quotas, KEY, FREE))
    await observer.client.set(HASH, 'corrupt')
    expect(await replica.fallback.readUsage(KEY, FREE, { version: 1 })).to.nested.include({ 'windows.day.used': 7 })
    expect(await observer.used(KEY)).to.deep.equal([7, 7])
    expect(replica.corrupt).to.deep.equal([KEY])
  })

  it('is repaired with the ban and the key version that the replica knows', async () => {
    await inSequence(5, () => {
      clock.advanceMs(1)
      return takeOne(replica.quotas, KEY, BANNING, { version: 4 })
    })
    const before = await observer.hash(KEY)
    await observer.client.set(HASH, 'corrupt')
    expect((await takeOne(replica.quotas, KEY, BANNING, { version: 4 })).kind).to.equal('banned')
    expect(await observer.hash(KEY)).to.deep.equal(before)
  })

  it('starts again if the replica knows nothing of the key', async () => {
    await observer.client.set(HASH, 'corrupt')
    expect(await takeOne(replica.quotas, KEY, FREE)).to.nested.include({ kind: 'admitted', 'quota.day.remaining': 999 })
  })

  it('is left unchanged by commands, which say what to do', async () => {
    await observer.client.set(HASH, 'corrupt')
    const { control } = replica
    for (const command of [() => control.usage(KEY, FREE), () => control.unban(KEY), () => control.announce(KEY, 2)]) {
      const error = await rejection(command())
      expect(error).to.be.instanceOf(OperatorError)
      expect((error as Error).message).to.equal('The quota of key_one in Redis is corrupt. The next request with the key repairs it.')
    }
    expect([await observer.client.get(HASH), replica.changes]).to.deep.equal(['corrupt', [true]])
  })
})
