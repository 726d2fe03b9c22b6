import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/ports/clock.js'
import type { Outdated, QuotaStore } from '../../core/ports/quota-store.js'
import type { KeyVersion, Charge, Quota, QuotaRules, QuotaState, Verdict } from '../../core/quota.js'
import { toUsage, toVerdict } from '../../core/quota.js'
import { minutePhaseSeconds } from '../../core/window.js'
import type { QuotaReply } from './quota-hash.js'
import type { RedisConnection } from './redis-connection.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'
import { RejectionCache } from './rejection-cache.js'
import { SharedClock } from './shared-clock.js'
import { PendingUsage } from './pending-usage.js'

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
  readonly rejections?: RejectionCache
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
  readonly #rejections: RejectionCache
  readonly #pendingUsage = new PendingUsage()
  /** One for all outages: what it has given out of a window it does not give out again in the next one. */
  readonly #local: QuotaStore

  constructor({ redis, clock, makeLocalQuotas, rejections = new RejectionCache() }: RedisQuotaStoreDeps) {
    this.#redis = redis
    this.#rejections = rejections
    this.#clock = clock
    this.#sharedClock = new SharedClock(clock)
    this.#local = makeLocalQuotas(this.#sharedClock, (keyId) => this.#known.get(keyId))
    redis.breaker.onChange((isUp) => {
      this.#rejections.clear()
      if (isUp) void this.#reconcileAll()
    })
    redis.keyChanges.onChange((keyId, { pardoned }) => {
      this.#rejections.forget(keyId)
      if (pardoned) this.#pendingUsage.forgetStrikes(keyId)
    })
  }

  async take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<Verdict | Outdated> {
    const cached = this.#rejections.refuse(keyId, rules, keyVersion, this.#at(keyId))
    if (cached) {
      const { state, isStrike, verdict } = cached
      if (isStrike) this.#pendingUsage.add(keyId, rules, { window: state.window, strikes: 1, used: { minute: 0, day: 0 } })
      return verdict
    }
    if (!this.#redis.breaker.isUp) return this.#takeLocally(keyId, rules, keyVersion)

    const pendingUsage = this.#pendingUsage.take(keyId)
    try {
      const { became, at, state } = await this.#call(keyId, () =>
        this.#redis.quotaHash.take(keyId, rules, keyVersion, pendingUsage?.report),
      )
      if (became === 'outdated') {
        if (pendingUsage) this.#pendingUsage.add(keyId, rules, pendingUsage.report)
        return { kind: 'outdated' }
      }
      const verdict = toVerdict(state, rules, at, { charged: became === 'charged' })
      if (verdict.kind !== 'admitted') this.#rejections.remember(keyId, keyVersion, state, at)
      return verdict
    } catch (error) {
      if (!(error instanceof RedisUnavailable)) throw error
      if (pendingUsage && !error.maybeExecuted) this.#pendingUsage.add(keyId, rules, pendingUsage.report)
      return this.#takeLocally(keyId, rules, keyVersion, error)
    }
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota> {
    try {
      const { state, at } = await this.#call(keyId, () => this.#redis.quotaHash.refund(keyId, rules, charge))
      this.#rejections.forget(keyId)
      // Other replicas may be refusing the key from memory, for want of the request that was given back.
      if (isLastLeft(state, rules)) void this.#redis.keyChanges.publish(keyId)
      return toUsage(state, rules, at).quota
    } catch (error) {
      if (!(error instanceof RedisUnavailable)) throw error
      if (!error.maybeExecuted) this.#pendingUsage.addRequests(keyId, rules, charge, -1)
      return this.#local.refund(keyId, charge, rules)
    }
  }

  async #call(keyId: string, command: () => Promise<QuotaReply>): Promise<QuotaReply> {
    const sentAtMs = this.#clock.nowMs()
    const reply = await this.#redis.breaker.call(command, keyId)
    this.#sharedClock.observe(reply.at.nowMs, sentAtMs)
    this.#known.set(keyId, reply.state)
    return reply
  }

  /** The request itself is told to Redis later, unless it may have been counted there already. */
  async #takeLocally(keyId: string, rules: QuotaRules, keyVersion: KeyVersion, away?: RedisUnavailable): Promise<Verdict | Outdated> {
    const verdict = await this.#local.take(keyId, rules, keyVersion)
    if ('charge' in verdict && !away?.maybeExecuted) this.#pendingUsage.addRequests(keyId, rules, verdict.charge, 1)
    return verdict
  }

  async #reconcileAll(): Promise<void> {
    const keyIds = this.#pendingUsage.keyIds
    while (this.#redis.breaker.isUp && keyIds.length > 0) {
      await Promise.all(keyIds.splice(0, SETTLED_AT_ONCE).map((keyId) => this.#reconcile(keyId)))
    }
  }

  async #reconcile(keyId: string): Promise<void> {
    const pendingUsage = this.#pendingUsage.take(keyId)
    if (!pendingUsage) return
    const { rules, report } = pendingUsage
    try {
      await this.#call(keyId, () => this.#redis.quotaHash.reconcile(keyId, rules, report))
    } catch (error) {
      if (!(error instanceof RedisUnavailable)) throw error
      if (!error.maybeExecuted) this.#pendingUsage.add(keyId, rules, report)
    }
  }

  #at(keyId: string) {
    return { nowMs: this.#sharedClock.nowMs(), phaseSeconds: minutePhaseSeconds(keyId) }
  }
}

function isLastLeft({ used }: QuotaState, { limits }: QuotaRules): boolean {
  return used.minute + 1 === limits.minute || used.day + 1 === limits.day
}
