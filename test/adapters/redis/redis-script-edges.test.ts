import { expect } from 'chai'
import type { QuotaHash, StateReply } from '../../../src/adapters/redis/quota-hash.js'
import type { RedisClient } from '../../../src/adapters/redis/redis-client.js'
import { makeRedisClient } from '../../../src/adapters/redis/make-redis-client.js'
import type { KeyVersion, QuotaState, UsageDelta } from '../../../src/core/quota.js'
import { decide, isStale, reconcile, rollForward } from '../../../src/core/quota.js'
import type { Instant } from '../../../src/core/window.js'
import { getMinutePhaseSeconds, getWindowNumber, getWindowResetSeconds } from '../../../src/core/window.js'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import type { RedisDatabase } from '../../support/engines/redis-engine.js'
import { aRedisDatabase } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import { aQuotaHash, RedisObserver } from '../../support/redis-replica.js'

const KEY = 'key_one'
const NOON_MS = Date.UTC(2026, 10, 20, 12)
const RULES = someQuotaRules({
  limits: { minute: 5, day: 50 },
  ban: someBanRules({ graceMs: 700, minStrikes: 6, firstMs: 10_000, longestMs: 30_000, forgetAfterMs: 45_000 }),
})
const PHASE = { phaseSeconds: getMinutePhaseSeconds(KEY) }
const WINDOW = {
  minute: getWindowNumber('minute', { nowMs: NOON_MS, ...PHASE }),
  day: getWindowNumber('day', { nowMs: NOON_MS, ...PHASE }),
}
const MINUTE_END_MS = getWindowResetSeconds('minute', WINDOW.minute, PHASE) * 1000
const DAY_END_MS = getWindowResetSeconds('day', WINDOW.day, PHASE) * 1000

/** States on both sides of each rule, at noon. */
const STATES: Readonly<Record<string, QuotaState>> = {
  'some left': aState({ used: { minute: 2, day: 20 } }),
  'one left in the minute': aState({ used: { minute: 4, day: 20 } }),
  'one left in the day': aState({ used: { minute: 2, day: 49 } }),
  'minute used up': aState({ used: { minute: 5, day: 20 } }),
  'day used up': aState({ used: { minute: 1, day: 50 } }),
  'both used up and rejected': aState({ used: { minute: 5, day: 50 }, firstRejectionMs: NOON_MS }),
  'a strike before the last': aState({ used: { minute: 5, day: 20 }, firstRejectionMs: NOON_MS - 5_000, strikes: 4 }),
  'the last strike next': aState({ used: { minute: 5, day: 20 }, firstRejectionMs: NOON_MS - 5_000, strikes: 5 }),
  'the last strike of the day next': aState({ used: { minute: 1, day: 50 }, firstRejectionMs: NOON_MS - 5_000, strikes: 5 }),
  'banned for the first time': aState({ used: { minute: 1, day: 20 }, bannedUntilMs: NOON_MS + 3_000, banLevel: 1 }),
  'banned for the third time': aState({ used: { minute: 5, day: 20 }, bannedUntilMs: NOON_MS + 3_000, banLevel: 3 }),
  'banned, and the last strike next': aState({
    used: { minute: 5, day: 20 },
    bannedUntilMs: NOON_MS + 3_000,
    banLevel: 2,
    firstRejectionMs: NOON_MS - 5_000,
    strikes: 5,
  }),
  'banned some time ago, and the last strike of the day next': aState({
    used: { minute: 1, day: 50 },
    bannedUntilMs: NOON_MS - 44_000,
    banLevel: 2,
    firstRejectionMs: NOON_MS - 5_000,
    strikes: 5,
  }),
}

const MOMENTS: Readonly<Record<string, number>> = {
  noon: NOON_MS,
  'the end of the grace': NOON_MS + 700,
  'the end of the ban': NOON_MS + 3_000,
  'the end of the ban level': NOON_MS + 1_000,
  'the end of the ban level of the banned': NOON_MS + 48_000,
  'the end of the minute': MINUTE_END_MS,
  'the end of the day': DAY_END_MS,
  'the beginning of the minute': MINUTE_END_MS - 60_000,
  'the beginning of the day': DAY_END_MS - 86_400_000,
}

const DELTAS: readonly (UsageDelta | undefined)[] = [
  undefined,
  { window: WINDOW, strikes: 0, used: { minute: 1, day: 1 } },
  { window: WINDOW, strikes: 0, used: { minute: -9, day: -99 } },
  { window: WINDOW, strikes: 1, used: { minute: 0, day: 0 } },
  { window: { ...WINDOW, minute: WINDOW.minute - 1 }, strikes: 1, used: { minute: 2, day: 2 } },
  { window: { minute: WINDOW.minute + 1, day: WINDOW.day + 1 }, strikes: 9, used: { minute: 3, day: 3 } },
]

const KEY_VERSIONS: readonly KeyVersion[] = [
  { version: 3 },
  { version: 2 },
  { version: 2, readSince: 2 },
  { version: 2, readSince: 3 },
  { version: 4 },
]

describe('the quota script at the millisecond at which something changes', () => {
  let database: RedisDatabase
  let client: RedisClient
  let observer: RedisObserver
  let hash: QuotaHash
  const clock = new MovableClock()

  before(async function () {
    database = await aRedisDatabase(this)
    observer = new RedisObserver(database.url)
    client = makeRedisClient(database.url)
    await client.connect()
    hash = aQuotaHash(client, clock)
  })

  after(async () => {
    client?.disconnect()
    observer?.close()
    await database?.release()
  })

  for (const [stateName, state] of Object.entries(STATES)) {
    it(`decides as the core does, and leaves the same state, for a key with ${stateName}`, async function () {
      this.timeout(30_000)
      for (const [momentName, momentMs] of Object.entries(MOMENTS)) {
        for (const offsetMs of [-1, 0, 1]) {
          clock.moveTo(momentMs + offsetMs)
          const at = { nowMs: clock.nowMs(), ...PHASE }
          for (const delta of DELTAS) {
            for (const keyVersion of KEY_VERSIONS) {
              const label = `${JSON.stringify({ keyVersion, delta })} at ${momentName}, ${offsetMs} ms`
              const { outcome, left } = expected(state, keyVersion, at, delta)
              await observer.store(KEY, toFields(state))
              const rolled = rollForward(left, RULES.ban, at)
              expect(await hash.take(KEY, RULES, keyVersion, { delta }), label).to.deep.equal({ outcome, at, state: rolled })
              expect(await observer.hash(KEY), `left by ${label}`).to.deep.equal(toNonZero(left))
            }
            if (!delta) continue
            await observer.store(KEY, toFields(state))
            const reconciled = reconcile(state, RULES, at, delta)
            expect(await hash.reconcile(KEY, RULES, { delta })).to.deep.equal({ outcome: 'done', state: reconciled, at })
            expect(await observer.hash(KEY)).to.deep.equal(toNonZero(reconciled))
          }
        }
      }
    })
  }
})

function expected(state: QuotaState, keyVersion: KeyVersion, at: Instant, delta: UsageDelta | undefined) {
  if (isStale(keyVersion, state.keyVersion)) return { outcome: 'stale', left: state } as const
  const { verdict, state: after } = decide(state, RULES, at, delta)
  const rejected = after.bannedUntilMs > state.bannedUntilMs ? 'banned' : 'rejected'
  const outcome: StateReply['outcome'] = 'charge' in verdict ? 'done' : rejected
  return { outcome, left: { ...after, keyVersion: keyVersion.version } }
}

function aState(overrides: Partial<QuotaState>): QuotaState {
  return {
    window: WINDOW,
    used: { minute: 0, day: 0 },
    strikes: 0,
    bannedUntilMs: 0,
    banLevel: 0,
    unbannedAtMs: 0,
    keyVersion: 3,
    ...overrides,
  }
}

function toFields({ window, used, firstRejectionMs = 0, ...same }: QuotaState) {
  return { ...window, minuteUsed: used.minute, dayUsed: used.day, firstRejectionMs, ...same }
}

/** What `RedisObserver.hash` returns for this state. */
function toNonZero(state: QuotaState) {
  return Object.fromEntries(Object.entries(toFields(state)).filter(([, value]) => value !== 0))
}
