import { expect } from 'chai'
import fc from 'fast-check'
import type { CacheableQuotaStore } from '../../../src/adapters/redis/rejection-cache.js'
import { RejectionCache } from '../../../src/adapters/redis/rejection-cache.js'
import type { Charge, KeyVersion, QuotaRules, QuotaState, UsageDelta } from '../../../src/core/quota.js'
import { decide, refund } from '../../../src/core/quota.js'
import type { WindowNumbers } from '../../../src/core/window.js'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import type { RedisDatabase } from '../../support/engines/redis-engine.js'
import { aRedisDatabase } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { requireCharge, inSequence, inParallel } from '../../support/verdicts.js'

const SEED = 20_261_127
const RECORD: KeyVersion = { version: 1 }
const SMALL = someQuotaRules({ limits: { minute: 2, day: 1000 } })
const BANNING = someQuotaRules({ limits: { minute: 2 }, ban: someBanRules({ graceMs: 0, minStrikes: 5 }) })
/** Rejections by the store after which a key is rejected from the cache. */
const REJECTIONS = 10

describe('the rejection cache', () => {
  it('rejects a key after its tenth rejection within a second, not before, and no other key', async () => {
    const { take, fromCache } = await anExhaustedKey()
    for (let count = 1; count <= REJECTIONS; count++) expect(await fromCache(), `rejection ${count}`).to.equal(false)
    expect(await fromCache()).to.equal(true)
    expect((await take({ keyId: 'key_two' })).kind).to.equal('admitted')
  })

  it('never rejects a key that the store rejects nine times per second', async () => {
    const { clock, fromCache } = await anExhaustedKey({ rules: someQuotaRules({ limits: { minute: 1000, day: 2 } }) })
    for (let count = 0; count < 300; count++) {
      clock.advanceMs(112)
      expect(await fromCache()).to.equal(false)
    }
  })

  it('rejects for one second, then calls the store once, and rejects for another second', async () => {
    const { clock, fromCache } = await aCachedKey()
    clock.advanceMs(999)
    expect(await fromCache()).to.equal(true)
    clock.advanceMs(1)
    expect(await inSequence(2, () => fromCache())).to.deep.equal([false, true])
    clock.advanceMs(999)
    expect(await fromCache()).to.equal(true)
  })

  it('forgets a key one second after it last rejected it', async () => {
    const { clock, fromCache } = await aCachedKey()
    clock.advanceMs(2_000)
    expect(await inSequence(2, () => fromCache())).to.deep.equal([false, false])
  })

  it('calls the store for a different record of the key, for a record that was just read, and after a refund', async () => {
    const { cache, charge, fromCache } = await aCachedKey()
    expect(await fromCache({ version: 1, readSince: 1 })).to.equal(false)
    expect(await fromCache({ version: 0 })).to.equal(false)
    const other = await aCachedKey()
    expect(await other.fromCache({ version: 2 })).to.equal(false)
    expect(await fromCache()).to.equal(false)
    const refunded = await aCachedKey()
    await refunded.cache.refund('key_one', charge, SMALL)
    expect(await refunded.fromCache()).to.equal(false)
    expect(await takeOne(cache, 'key_three', SMALL)).to.include({ kind: 'admitted' })
  })

  it('never admits: it calls the store when the window or the ban ends, and for higher limits', async () => {
    const { clock, store, take } = await aCachedKey()
    clock.moveTo(getMinuteEndMs(store.state) - 1)
    await inSequence(REJECTIONS + 1, () => take())
    clock.advanceMs(1)
    expect((await take()).kind).to.equal('admitted')

    const banned = await aCachedKey({ rules: someQuotaRules({ ...BANNING, ban: { ...BANNING.ban, firstMs: 300 } }), passesMs: 1 })
    expect((await banned.take()).kind).to.equal('banned')
    banned.clock.moveTo(banned.store.state.bannedUntilMs - 1)
    expect(await banned.fromCache()).to.equal(true)
    banned.clock.advanceMs(1)
    expect(await banned.fromCache()).to.equal(false)

    const upgraded = await aCachedKey()
    expect((await upgraded.take({ rules: someQuotaRules({ limits: { minute: 3 } }) })).kind).to.equal('admitted')
  })

  it('reports its strikes with the next decision, and lets the store decide the strike that begins a ban', async () => {
    const rules = someQuotaRules({ ...BANNING, ban: someBanRules({ graceMs: 0, minStrikes: 5 }) })
    const { clock, store, take, fromCache } = await aCachedKey({ rules })
    clock.advanceMs(1)
    expect(await inSequence(4, () => fromCache())).to.deep.equal([true, true, true, true])
    expect(store.state.strikes).to.equal(0)
    const calls = store.calls
    expect((await take()).kind).to.equal('banned')
    expect(store.calls).to.equal(calls + 1)
  })

  it('lets the store decide the first rejection of a minute, which starts the grace period', async () => {
    const { clock, store, fromCache } = await aCachedKey({ rules: someQuotaRules({ limits: { minute: 1000, day: 2 } }) })
    clock.moveTo(getMinuteEndMs(store.state) - 1)
    await inSequence(REJECTIONS, () => fromCache())
    expect(await fromCache()).to.equal(true)
    clock.advanceMs(1)
    expect(await fromCache()).to.equal(false)
  })

  it('does not reject for longer if the clock steps back', async () => {
    for (const ms of [-1, -1_000, -3_600_000]) {
      const { clock, fromCache } = await aCachedKey()
      clock.advanceMs(ms)
      expect(await fromCache(), `${ms} ms`).to.equal(false)
    }
  })

  it('caches nothing while the shared state is unavailable', async () => {
    const { store, fromCache } = await anExhaustedKey()
    store.isShared = false
    expect(await inSequence(REJECTIONS + 2, () => fromCache())).not.to.include(true)
  })

  it('holds at most 10,000 keys', async () => {
    const { take, fromCache } = await aCachedKey()
    for (let key = 0; key < 10_000; key++) await inSequence(3, () => take({ keyId: `key_${key}` }))
    expect(await fromCache()).to.equal(false)
  })

  it('decides 12,000 random requests exactly like a store without a cache, including the start of bans, with fewer than half of the calls', async () => {
    const clock = new MovableClock()
    const [cached, uncached] = [new CoreStore(clock), new CoreStore(clock)]
    const stores = [new RejectionCache(cached), new RejectionCache(uncached, 0)]
    const counts = new Map<string, number>()
    for (const [index, { keyId, passesMs }] of fc.sample(aStep, { numRuns: 12_000, seed: SEED }).entries()) {
      clock.advanceMs(passesMs)
      const [one, other] = await Promise.all(stores.map((store) => takeOne(store, keyId, RANDOM_RULES)))
      expect(one, `step ${index}`).to.deep.equal(other)
      const label = one?.kind === 'exhausted' ? `exhausted ${one.window}` : (one?.kind ?? 'none')
      counts.set(label, (counts.get(label) ?? 0) + 1)
    }
    for (const label of ['admitted', 'exhausted minute', 'exhausted day', 'banned']) expect(counts.get(label), label).to.be.above(100)
    expect(cached.calls).to.be.below(uncached.calls / 2)
  })
})

describe('the rejection caches of two replicas', function () {
  this.timeout(20_000)
  let database: RedisDatabase
  let clock: MovableClock
  let replica: RedisReplica
  let other: RedisReplica

  before(async function () {
    database = await aRedisDatabase(this)
  })

  beforeEach(async () => {
    await database.flush()
    clock = new MovableClock()
    replica = await aRedisReplica(database.url, { clock, hasNoTimeout: true })
    other = await aRedisReplica(database.url, { clock, hasNoTimeout: true })
  })

  afterEach(() => Promise.all([replica.close(), other.close()]))

  after(() => database?.release())

  const rejectFromCache = (rules: QuotaRules) => inSequence(2 * REJECTIONS, () => takeOne(replica.quotas, 'key_one', rules))

  it('report their strikes with the next call', async () => {
    await inParallel(3, () => takeOne(replica.quotas, 'key_one', SMALL))
    clock.advanceMs(1_500)
    await inSequence(40, () => takeOne(replica.quotas, 'key_one', SMALL))
    const before = replica.takes()
    expect(before).to.be.below(20)
    expect((await replica.control.usage('key_one', SMALL)).strikes).to.be.below(20)
    clock.advanceMs(1_000)
    await takeOne(replica.quotas, 'key_one', SMALL)
    expect(replica.takes()).to.equal(before + 1)
    expect((await replica.control.usage('key_one', SMALL)).strikes).to.equal(41)
  })

  it('report their strikes with the next record of the key if the first one is stale', async () => {
    await inParallel(3, () => takeOne(replica.quotas, 'key_one', SMALL))
    clock.advanceMs(1_500)
    await inSequence(40, () => takeOne(replica.quotas, 'key_one', SMALL))
    await other.control.announce('key_one', 2)
    clock.advanceMs(1_000)
    expect(await replica.quotas.take('key_one', SMALL, { version: 1 })).to.deep.equal({ kind: 'stale', knownVersion: 2 })
    await takeOne(replica.quotas, 'key_one', SMALL, { version: 2 })
    expect((await replica.control.usage('key_one', SMALL)).strikes).to.equal(41)
  })

  it('report no strikes from before an unban on another replica', async () => {
    await inParallel(3, () => takeOne(replica.quotas, 'key_one', SMALL))
    clock.advanceMs(1_500)
    await inSequence(40, () => takeOne(replica.quotas, 'key_one', SMALL))
    await other.control.unban('key_one')
    clock.advanceMs(1_000)
    await takeOne(replica.quotas, 'key_one', SMALL)
    expect((await other.control.usage('key_one', SMALL)).strikes).to.equal(0)
  })

  for (const [label, rules, change] of [
    ['the last request of the minute is refunded', SMALL, ({ quotas }, charge) => quotas.refund('key_one', charge, SMALL)],
    [
      'the last request of the day is refunded',
      someQuotaRules({ limits: { minute: 1000, day: 2 } }),
      ({ quotas }, charge) => quotas.refund('key_one', charge, SMALL),
    ],
    ['the change of its record is announced', SMALL, ({ control }) => control.announce('key_one', 2)],
  ] as readonly [string, QuotaRules, (replica: RedisReplica, charge: Charge) => Promise<unknown>][]) {
    it(`stop rejecting a key within a second after ${label} on another replica`, async () => {
      const [first] = await inParallel(20, () => takeOne(replica.quotas, 'key_one', rules))
      await rejectFromCache(rules)
      const before = replica.takes()
      await change(other, requireCharge(first))
      expect((await takeOne(replica.quotas, 'key_one', rules)).kind, 'from the cache').to.equal('exhausted')
      expect(replica.takes()).to.equal(before)
      clock.advanceMs(1_000)
      expect((await replica.quotas.take('key_one', rules, { version: 1 })).kind).to.be.oneOf(['admitted', 'stale'])
    })
  }

  it('stop rejecting a key within a second after its ban is lifted on another replica', async () => {
    await inParallel(2, () => takeOne(replica.quotas, 'key_one', BANNING))
    for (let count = 0; count < 4 * REJECTIONS; count++) {
      clock.advanceMs(1)
      await takeOne(replica.quotas, 'key_one', BANNING)
    }
    clock.advanceMs(59_000)
    await rejectFromCache(BANNING)
    expect(await other.control.unban('key_one')).to.equal('lifted')
    expect((await takeOne(replica.quotas, 'key_one', BANNING)).kind, 'from the cache').to.equal('banned')
    clock.advanceMs(999)
    expect((await takeOne(replica.quotas, 'key_one', BANNING)).kind).to.be.oneOf(['banned', 'admitted'])
    clock.advanceMs(1)
    expect((await takeOne(replica.quotas, 'key_one', BANNING)).kind).to.equal('admitted')
  })
})

const RANDOM_RULES = someQuotaRules({
  limits: { minute: 10, day: 60 },
  ban: someBanRules({ minStrikes: 25, firstMs: 3_000, longestMs: 20_000, forgetAfterMs: 60_000 }),
})

const aStep = fc.record({
  keyId: fc.constantFrom('key_a', 'key_a', 'key_b'),
  passesMs: fc.oneof(
    { weight: 1000, arbitrary: fc.integer({ min: 0, max: 60 }) },
    { weight: 20, arbitrary: fc.integer({ min: 100, max: 2_500 }) },
    { weight: 5, arbitrary: fc.constantFrom(30_000, 60_000, 61_000) },
    { weight: 1, arbitrary: fc.constantFrom(3_600_000, 86_400_000) },
  ),
})

/** Applies the rules of the core to states in a map. */
class CoreStore implements CacheableQuotaStore {
  calls = 0
  isShared = true
  readonly #states = new Map<string, QuotaState>()
  readonly #pending = new Map<string, UsageDelta>()

  constructor(private readonly clock: MovableClock) {}

  /** The state of key_one. */
  get state(): QuotaState {
    const state = this.#states.get('key_one')
    if (!state) throw new Error('key_one was not used')
    return state
  }

  /** All keys have the same minute. */
  now() {
    return { nowMs: this.clock.nowMs(), phaseSeconds: 0 }
  }

  sharedState(keyId: string): QuotaState | undefined {
    return this.isShared ? this.#states.get(keyId) : undefined
  }

  addStrike(keyId: string, _rules: QuotaRules, window: WindowNumbers): void {
    const strikes = (this.#pending.get(keyId)?.strikes ?? 0) + 1
    this.#pending.set(keyId, { window, strikes, used: { minute: 0, day: 0 } })
  }

  async take(keyId: string, rules: QuotaRules) {
    this.calls += 1
    const { verdict, state } = decide(this.#states.get(keyId), rules, this.now(), this.#pending.get(keyId))
    this.#pending.delete(keyId)
    this.#states.set(keyId, state)
    return verdict
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules) {
    const { quota, state } = refund(this.#states.get(keyId), charge, rules, this.now())
    this.#states.set(keyId, state)
    return quota
  }
}

function getMinuteEndMs({ window }: QuotaState): number {
  return (window.minute + 1) * 60_000
}

/** A key that has reached its limit but has not been rejected yet. */
async function anExhaustedKey({ rules = SMALL }: { rules?: QuotaRules } = {}) {
  const clock = new MovableClock(Date.UTC(2026, 10, 20, 12))
  const store = new CoreStore(clock)
  const cache = new RejectionCache(store)
  const take = ({
    keyId = 'key_one',
    keyVersion = RECORD,
    rules: given = rules,
  }: {
    keyId?: string
    keyVersion?: KeyVersion
    rules?: QuotaRules
  } = {}) => takeOne(cache, keyId, given, keyVersion)
  const charge = requireCharge((await inSequence(2, () => take()))[0])
  /** Calls `take`, and returns whether the verdict came from the cache. */
  const fromCache = async (keyVersion?: KeyVersion) => {
    const { calls } = store
    await take(keyVersion ? { keyVersion } : {})
    return store.calls === calls
  }
  return { clock, store, cache, charge, take, fromCache }
}

/** A key that is rejected from the cache. `passesMs`: between its rejections. */
async function aCachedKey({ rules = SMALL, passesMs = 0 } = {}) {
  const key = await anExhaustedKey({ rules })
  for (let count = 0; count < REJECTIONS; count++) {
    key.clock.advanceMs(passesMs)
    await key.take()
  }
  return key
}
