import { expect } from 'chai'
import fc from 'fast-check'
import { MemoryQuotaStore } from '../../../src/adapters/memory/memory-quota-store.js'
import { RedisQuotaControl } from '../../../src/adapters/redis/redis-quota-control.js'
import { RedisQuotaStore } from '../../../src/adapters/redis/redis-quota-store.js'
import { RejectionCache } from '../../../src/adapters/redis/rejection-cache.js'
import type { QuotaRules, QuotaState, Verdict } from '../../../src/core/quota.js'
import { decide } from '../../../src/core/quota.js'
import type { Instant } from '../../../src/core/window.js'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import type { RedisDatabase } from '../../support/engines/redis-engine.js'
import { aRedisDatabase } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import { aPatientConnection, aRedisReplica, Onlooker } from '../../support/redis-replica.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { takeOne } from '../../support/take-one.js'
import { until } from '../../support/until.js'
import { chargeOf, times } from '../../support/verdicts.js'

const SEED = 20_261_127
const NOON_MS = Date.UTC(2026, 10, 20, 12)
const RECORD = { version: 1 }
const SMALL = someQuotaRules({ limits: { minute: 2, day: 1000 } })

/** Ten requests over the limit of a key that Redis would refuse: as many as make it one that hammers. */
const HAMMERING = 10

describe('the memory of rejections', () => {
  it('answers for a key from the tenth rejection within a second on, and not before', () => {
    const { memory, at, state } = refusedKey()
    for (let rejection = 1; rejection <= HAMMERING; rejection++) {
      expect(memory.refuse('key_one', SMALL, RECORD, at(rejection * 100 - 1)), `after ${rejection - 1}`).to.equal(undefined)
      memory.remember('key_one', RECORD, state, at(rejection * 99))
    }
    expect(memory.refuse('key_one', SMALL, RECORD, at(991))).to.nested.include({ 'verdict.kind': 'exhausted', isStrike: false })
    expect(memory.refuse('key_two', SMALL, RECORD, at(991))).to.equal(undefined)
  })

  it('never answers for a key that is refused nine times a second, however long', () => {
    const { memory, at, state } = refusedKey()
    for (let rejection = 0; rejection < 300; rejection++) {
      const now = at(rejection * 112)
      expect(memory.refuse('key_one', SMALL, RECORD, now)).to.equal(undefined)
      memory.remember('key_one', RECORD, state, now)
    }
  })

  it('answers for one second, then Redis is asked once, and it answers for another', () => {
    const { memory, at, state } = hammeringKey()
    expect(memory.refuse('key_one', SMALL, RECORD, at(999))).not.to.equal(undefined)
    expect(memory.refuse('key_one', SMALL, RECORD, at(1000))).to.equal(undefined)
    memory.remember('key_one', RECORD, state, at(1000))
    expect(memory.refuse('key_one', SMALL, RECORD, at(1999))).not.to.equal(undefined)
    expect(memory.refuse('key_one', SMALL, RECORD, at(2000))).to.equal(undefined)
  })

  it('has forgotten a key that hammered a second after it last answered', () => {
    const { memory, at, state } = hammeringKey()
    memory.remember('key_one', RECORD, state, at(2000))
    expect(memory.refuse('key_one', SMALL, RECORD, at(2001))).to.equal(undefined)
  })

  it('is silent for another record of the key, for one that was just read, and when it is told to forget', () => {
    const { memory, at } = hammeringKey()
    expect(memory.refuse('key_one', SMALL, { version: 2 }, at(1))).to.equal(undefined)
    expect(memory.refuse('key_one', SMALL, { version: 0 }, at(1))).to.equal(undefined)
    expect(memory.refuse('key_one', SMALL, { ...RECORD, justRead: true }, at(1))).to.equal(undefined)
    expect(memory.refuse('key_one', SMALL, RECORD, at(1))).not.to.equal(undefined)
    memory.forget('key_one')
    expect(memory.refuse('key_one', SMALL, RECORD, at(1))).to.equal(undefined)
    const cleared = hammeringKey()
    cleared.memory.clear()
    expect(cleared.memory.refuse('key_one', SMALL, RECORD, at(1))).to.equal(undefined)
  })

  it('never admits: where the window ends, the ban does or the limits are higher, Redis is asked', () => {
    const ending = hammeringKey({ at: NOON_MS + 59_500 })
    expect(ending.memory.refuse('key_one', SMALL, RECORD, ending.at(499))).not.to.equal(undefined)
    expect(ending.memory.refuse('key_one', SMALL, RECORD, ending.at(500))).to.equal(undefined)
    const banned = hammeringKey({
      state: { ...refusedKey().state, used: { minute: 0, day: 2 }, bannedUntilMs: NOON_MS + 300, banLevel: 1 },
    })
    expect(banned.memory.refuse('key_one', SMALL, RECORD, banned.at(299))).to.nested.include({ 'verdict.kind': 'banned', isStrike: false })
    expect(banned.memory.refuse('key_one', SMALL, RECORD, banned.at(300))).to.equal(undefined)
    const upgraded = hammeringKey()
    expect(upgraded.memory.refuse('key_one', someQuotaRules({ limits: { minute: 3 } }), RECORD, upgraded.at(1))).to.equal(undefined)
  })

  it('counts the strikes that it swallows, and never begins a ban: Redis is asked for the strike that would', () => {
    const rules = someQuotaRules({ limits: { minute: 2 }, ban: someBanRules({ graceMs: 0, minStrikes: 5 }) })
    const { memory, at } = hammeringKey()
    const cached = [1, 2, 3, 4].map((ms) => memory.refuse('key_one', rules, RECORD, at(ms)))
    expect(cached.map((each) => each?.isStrike)).to.deep.equal([true, true, true, true])
    expect(cached.map((each) => each?.state.strikes)).to.deep.equal([1, 2, 3, 4])
    expect(memory.refuse('key_one', rules, RECORD, at(5))).to.equal(undefined)
    expect(memory.refuse('key_one', rules, RECORD, at(6))).to.equal(undefined)
  })

  it('leaves the first rejection of a minute to Redis, which measures the grace from it', () => {
    const { memory, at } = hammeringKey({ at: NOON_MS + 59_500, state: { ...refusedKey().state, used: { minute: 2, day: 1000 } } })
    expect(memory.refuse('key_one', SMALL, RECORD, at(499))).not.to.equal(undefined)
    expect(memory.refuse('key_one', SMALL, RECORD, at(500))).to.equal(undefined)
  })

  it('answers no longer than that when the clock steps back', () => {
    const { memory, at } = hammeringKey()
    for (const ms of [-1, -1_000, -3_600_000]) expect(memory.refuse('key_one', SMALL, RECORD, at(ms)), `${ms} ms`).to.equal(undefined)
  })

  it('remembers no more than 10,000 keys', () => {
    const { memory, at, state } = hammeringKey()
    for (let key = 0; key < 10_000; key++) memory.remember(`key_${key}`, RECORD, state, at(0))
    expect(memory.refuse('key_one', SMALL, RECORD, at(1))).to.equal(undefined)
  })
})

describe('a quota store with the memory of rejections', function () {
  this.timeout(60_000)
  let database: RedisDatabase
  let other: RedisDatabase
  const open: { close(): Promise<void> }[] = []

  before(async function () {
    database = await aRedisDatabase(this)
    other = await aRedisDatabase(this)
  })

  beforeEach(() => Promise.all([database.flush(), other.flush()]))

  afterEach(() => Promise.all(open.splice(0).map((each) => each.close())))

  after(() => Promise.all([database?.release(), other?.release()]))

  async function aStore(url: string, clock: MovableClock, rejections: RejectionCache) {
    const redis = aPatientConnection(url, clock)
    let calls = 0
    const take = redis.quotaHash.take.bind(redis.quotaHash)
    redis.quotaHash.take = (...args) => {
      calls += 1
      return take(...args)
    }
    const makeLocalQuotas = () => new MemoryQuotaStore(clock)
    const quotas = new RedisQuotaStore({ redis, clock, makeLocalQuotas, rejections })
    await redis.connect()
    open.push(redis)
    return { quotas, control: new RedisQuotaControl(redis), calls: () => calls }
  }

  it('decides 12,000 random requests of keys that hammer as one without it, bans to the millisecond, with a fraction of the calls', async () => {
    const clock = new MovableClock()
    const with_ = await aStore(database.url, clock, new RejectionCache())
    const without = await aStore(other.url, clock, new RejectionCache({ rememberedMs: 0 }))
    const met = new Map<string, number>()
    for (const [index, step] of fc.sample(aStep, { numRuns: 12_000, seed: SEED }).entries()) {
      clock.advanceMs(step.passesMs)
      const [one, two] = await Promise.all([with_, without].map(({ quotas }) => takeOne(quotas, step.keyId, step.rules)))
      expect(one, `step ${index}`).to.deep.equal(two)
      const what = one?.kind === 'exhausted' ? `exhausted ${one.window}` : (one?.kind ?? 'none')
      met.set(what, (met.get(what) ?? 0) + 1)
      if (index % 100 === 99) {
        const usages = await Promise.all([with_, without].map(({ control }) => control.usage(step.keyId, step.rules)))
        expect(usages[0]?.bannedUntilMs, `step ${index}`).to.equal(usages[1]?.bannedUntilMs)
        expect(usages[0]?.used).to.deep.equal(usages[1]?.used)
      }
    }
    for (const what of ['admitted', 'exhausted minute', 'exhausted day', 'banned']) expect(met.get(what), what).to.be.above(100)
    console.error(`      ${JSON.stringify([...met])}, calls ${with_.calls()} with and ${without.calls()} without`)
    expect(with_.calls()).to.be.below(without.calls() / 2)
  })

  it('tells Redis the strikes that it cached with its next call', async () => {
    const clock = new MovableClock()
    const { quotas, control, calls } = await aStore(database.url, clock, new RejectionCache())
    await times(3, () => takeOne(quotas, 'key_one', SMALL))
    clock.advanceMs(1_500)
    for (let count = 0; count < 40; count++) await takeOne(quotas, 'key_one', SMALL)
    const asked = calls()
    expect(asked).to.be.below(20)
    expect((await control.usage('key_one', SMALL)).strikes).to.be.below(20)
    clock.advanceMs(1_000)
    await takeOne(quotas, 'key_one', SMALL)
    expect(calls()).to.equal(asked + 1)
    expect((await control.usage('key_one', SMALL)).strikes).to.equal(41)
  })

  it('forgets the strikes that it cached of a key that is unbanned on another replica', async () => {
    const clock = new MovableClock()
    const [mine, yours] = [await aRedisReplica(database.url, { clock }), await aRedisReplica(database.url, { clock })]
    open.push(mine, yours)
    await untilListening(mine, database.url)
    await times(3, () => takeOne(mine.quotas, 'key_one', SMALL))
    clock.advanceMs(1_500)
    for (let count = 0; count < 40; count++) await takeOne(mine.quotas, 'key_one', SMALL)
    await yours.control.unban('key_one')
    await untilListening(mine, database.url)
    clock.advanceMs(1_000)
    await takeOne(mine.quotas, 'key_one', SMALL)
    expect((await yours.control.usage('key_one', SMALL)).strikes).to.equal(0)
  })

  for (const [what, change] of Object.entries({
    'is unbanned': ({ control }: RedisReplica) => control.unban('key_one'),
    'is announced to have changed': ({ control }: RedisReplica) => control.announce('key_one', 2),
    'is given back a request': ({ quotas }: RedisReplica, charge: ReturnType<typeof chargeOf>) => quotas.refund('key_one', charge, SMALL),
  })) {
    it(`forgets a key that ${what} on another replica, with no time passing`, async () => {
      const clock = new MovableClock()
      const [mine, yours] = [await aRedisReplica(database.url, { clock }), await aRedisReplica(database.url, { clock })]
      open.push(mine, yours)
      const rules = what === 'is unbanned' ? BANNED_SOON : SMALL
      const [first] = await times(20, () => takeOne(mine.quotas, 'key_one', rules))
      clock.advanceMs(1)
      let last: Verdict | undefined
      for (let count = 0; count < 80; count++) last = await takeOne(mine.quotas, 'key_one', rules)
      expect(last?.kind).to.equal(what === 'is unbanned' ? 'banned' : 'exhausted')
      await untilListening(mine, database.url)
      clock.advanceMs(what === 'is unbanned' ? 60_000 - 2 : 0)
      if (what === 'is unbanned') for (let count = 0; count < 12; count++) await takeOne(mine.quotas, 'key_one', rules)
      await change(yours, chargeOf(first))
      await until('it is served, or asked to read its record anew', async () => {
        const verdict = await mine.quotas.take('key_one', rules, RECORD)
        return verdict.kind === 'admitted' || verdict.kind === 'outdated'
      })
    })
  }
})

const BANNED_SOON = someQuotaRules({ limits: { minute: 2 }, ban: someBanRules({ graceMs: 0, minStrikes: 5, firstMs: 60_000 }) })

async function untilListening({ connection }: RedisReplica, url: string): Promise<void> {
  const onlooker = new Onlooker(url)
  const heard = new Set<string>()
  connection.keyChanges.onChange((keyId) => heard.add(keyId))
  await until('it listens', async () => {
    await onlooker.client.publish('petstore:key-changed', 'key_heard')
    return heard.has('key_heard')
  })
  onlooker.close()
}

const aStep = fc.record({
  keyId: fc.constantFrom('key_a', 'key_a', 'key_b'),
  passesMs: fc.oneof(
    { weight: 1000, arbitrary: fc.integer({ min: 0, max: 60 }) },
    { weight: 20, arbitrary: fc.integer({ min: 100, max: 2_500 }) },
    { weight: 5, arbitrary: fc.constantFrom(30_000, 60_000, 61_000) },
    { weight: 1, arbitrary: fc.constantFrom(3_600_000, 86_400_000) },
  ),
  rules: fc.constant<QuotaRules>(
    someQuotaRules({
      limits: { minute: 10, day: 60 },
      ban: someBanRules({ minStrikes: 25, firstMs: 3_000, longestMs: 20_000, forgetAfterMs: 60_000 }),
    }),
  ),
})

/** A key whose minute is used up, as Redis refused it at noon. `at`: milliseconds later. */
function refusedKey(beganMs = NOON_MS) {
  const memory = new RejectionCache()
  const at = (ms: number): Instant => ({ nowMs: beganMs + ms, phaseSeconds: 0 })
  let state: QuotaState | undefined
  for (let count = 0; count < 3; count++) ({ state } = decide(state, SMALL, at(0)))
  if (!state) throw new Error('Nothing was decided')
  return { memory, at, state }
}

/** The same, refused ten times at once. */
function hammeringKey({ at: beganMs = NOON_MS, state: given }: { at?: number; state?: QuotaState } = {}) {
  const key = refusedKey(beganMs)
  const state = given ? { ...given, window: key.state.window } : key.state
  for (let rejection = 0; rejection < HAMMERING; rejection++) key.memory.remember('key_one', RECORD, state, key.at(0))
  return { ...key, state }
}
