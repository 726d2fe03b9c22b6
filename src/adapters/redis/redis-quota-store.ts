import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/ports/clock.js'
import type { Outdated, QuotaStore } from '../../core/ports/quota-store.js'
import type { Asking, Charge, Quota, QuotaRules, QuotaState, Verdict } from '../../core/quota.js'
import { usageOf, verdictOf } from '../../core/quota.js'
import { minutePhaseSeconds } from '../../core/window.js'
import type { QuotaReply } from './quota-hash.js'
import type { RedisConnection } from './redis-connection.js'
import { RedisAway } from './redis-circuit-breaker.js'
import { RefusalMemory } from './rejection-cache.js'
import { SharedClock } from './shared-clock.js'
import { Unsettled } from './pending-usage.js'

/** Beyond this many keys, those that were used longest ago are not known when Redis goes away. */
const KNOWN_KEYS = 50_000

/** How many reports are under way at a time when Redis is back. */
const SETTLED_AT_ONCE = 64

/** Decides for this replica alone, from what was known of a key last. */
export type MakeLocalQuotas = (clock: Clock, known: (keyId: string) => QuotaState | undefined) => QuotaStore

export interface RedisQuotaStoreDeps {
  readonly redis: RedisConnection
  readonly clock: Clock
  readonly makeLocalQuotas: MakeLocalQuotas
  readonly refusals?: RefusalMemory
}

/**
 * Quotas shared by all replicas: one round trip for a decision. While Redis is away each replica gives out its part of every quota, and
 * tells what it gave out when Redis is back. A request whose answer was lost is left to Redis: it is never counted a second time.
 */
export class RedisQuotaStore implements QuotaStore {
  readonly #redis: RedisConnection
  readonly #clock: Clock
  readonly #sharedClock: SharedClock
  readonly #known = new LRUCache<string, QuotaState>({ max: KNOWN_KEYS })
  readonly #refusals: RefusalMemory
  readonly #unsettled = new Unsettled()
  /** One for all outages: what it has given out of a window it does not give out again in the next one. */
  readonly #local: QuotaStore

  constructor({ redis, clock, makeLocalQuotas, refusals = new RefusalMemory() }: RedisQuotaStoreDeps) {
    this.#redis = redis
    this.#refusals = refusals
    this.#clock = clock
    this.#sharedClock = new SharedClock(clock)
    this.#local = makeLocalQuotas(this.#sharedClock, (keyId) => this.#known.get(keyId))
    redis.link.onChange((isUp) => {
      this.#refusals.clear()
      if (isUp) void this.#settleAll()
    })
    redis.keyChanges.onChange((keyId, { pardoned }) => {
      this.#refusals.forget(keyId)
      if (pardoned) this.#unsettled.forgetStrikes(keyId)
    })
  }

  async take(keyId: string, rules: QuotaRules, asking: Asking): Promise<Verdict | Outdated> {
    const swallowed = this.#refusals.refuse(keyId, rules, asking, this.#at(keyId))
    if (swallowed) {
      const { state, isStrike, verdict } = swallowed
      if (isStrike) this.#unsettled.add(keyId, rules, { window: state.window, strikes: 1, used: { minute: 0, day: 0 } })
      return verdict
    }
    if (!this.#redis.link.isUp) return this.#takeLocally(keyId, rules, asking)

    const unsettled = this.#unsettled.take(keyId)
    try {
      const { became, at, state } = await this.#call(keyId, () => this.#redis.quotaHash.take(keyId, rules, asking, unsettled?.report))
      if (became === 'outdated') {
        if (unsettled) this.#unsettled.add(keyId, rules, unsettled.report)
        return { kind: 'outdated' }
      }
      const verdict = verdictOf(state, rules, at, { charged: became === 'charged' })
      if (verdict.kind !== 'admitted') this.#refusals.remember(keyId, asking, state, at)
      return verdict
    } catch (error) {
      if (!(error instanceof RedisAway)) throw error
      if (unsettled && !error.maybeExecuted) this.#unsettled.add(keyId, rules, unsettled.report)
      return this.#takeLocally(keyId, rules, asking, error)
    }
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota> {
    try {
      const { state, at } = await this.#call(keyId, () => this.#redis.quotaHash.refund(keyId, rules, charge))
      this.#refusals.forget(keyId)
      // Other replicas may be refusing the key from memory, for want of the request that was given back.
      if (isLastLeft(state, rules)) void this.#redis.keyChanges.publish(keyId)
      return usageOf(state, rules, at).quota
    } catch (error) {
      if (!(error instanceof RedisAway)) throw error
      if (!error.maybeExecuted) this.#unsettled.addRequests(keyId, rules, charge, -1)
      return this.#local.refund(keyId, charge, rules)
    }
  }

  async #call(keyId: string, command: () => Promise<QuotaReply>): Promise<QuotaReply> {
    const sentAtMs = this.#clock.nowMs()
    const reply = await this.#redis.link.call(command, keyId)
    this.#sharedClock.observe(reply.at.nowMs, sentAtMs)
    this.#known.set(keyId, reply.state)
    return reply
  }

  /** The request itself is told to Redis later, unless it may have been counted there already. */
  async #takeLocally(keyId: string, rules: QuotaRules, asking: Asking, away?: RedisAway): Promise<Verdict | Outdated> {
    const verdict = await this.#local.take(keyId, rules, asking)
    if ('charge' in verdict && !away?.maybeExecuted) this.#unsettled.addRequests(keyId, rules, verdict.charge, 1)
    return verdict
  }

  async #settleAll(): Promise<void> {
    const keyIds = this.#unsettled.keyIds
    while (this.#redis.link.isUp && keyIds.length > 0) {
      await Promise.all(keyIds.splice(0, SETTLED_AT_ONCE).map((keyId) => this.#settle(keyId)))
    }
  }

  async #settle(keyId: string): Promise<void> {
    const unsettled = this.#unsettled.take(keyId)
    if (!unsettled) return
    const { rules, report } = unsettled
    try {
      await this.#call(keyId, () => this.#redis.quotaHash.settle(keyId, rules, report))
    } catch (error) {
      if (!(error instanceof RedisAway)) throw error
      if (!error.maybeExecuted) this.#unsettled.add(keyId, rules, report)
    }
  }

  #at(keyId: string) {
    return { nowMs: this.#sharedClock.nowMs(), phaseSeconds: minutePhaseSeconds(keyId) }
  }
}

function isLastLeft({ used }: QuotaState, { limits }: QuotaRules): boolean {
  return used.minute + 1 === limits.minute || used.day + 1 === limits.day
}
