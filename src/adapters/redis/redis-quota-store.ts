import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/ports/clock.js'
import type { QuotaStore, StaleKeyRecord } from '../../core/ports/quota-store.js'
import type { Charge, KeyVersion, Quota, QuotaRules, QuotaState, UsageDelta, Verdict } from '../../core/quota.js'
import { toRefundDelta, toUsage, toVerdict } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { getMinutePhaseSeconds } from '../../core/window.js'
import type { QuotaHash, StateReply } from './quota-hash.js'
import type { RedisCircuitBreaker } from './redis-circuit-breaker.js'
import { SharedClock } from './shared-clock.js'

/** If more keys are in use, the state of the least recently used ones is unknown when an outage begins. */
const MAX_KNOWN_KEYS = 50_000

/**
 * Quotas that all replicas share: each decision is one round trip. Unlike the port, it throws `RedisUnavailable` during an outage, which
 * `FallbackQuotaStore` handles.
 */
export class RedisQuotaStore implements QuotaStore {
  readonly #sharedClock: SharedClock
  readonly #lastStates = new LRUCache<string, QuotaState>({ max: MAX_KNOWN_KEYS })

  /** `clock`: the local clock of this replica. */
  constructor(
    private readonly redis: { readonly breaker: RedisCircuitBreaker; readonly quotaHash: QuotaHash },
    private readonly clock: Clock,
  ) {
    this.#sharedClock = new SharedClock(clock)
  }

  /** Whether Redis is used for decisions. */
  get isUp(): boolean {
    return this.redis.breaker.isUp
  }

  onChange(listener: (isUp: boolean) => void): void {
    this.redis.breaker.onChange(listener)
  }

  /** Counts `pending` before it decides. If the record is stale, `pending` is not counted. */
  async take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion, pending?: UsageDelta): Promise<Verdict | StaleKeyRecord> {
    const { outcome, at, state } = await this.#call(keyId, () => this.redis.quotaHash.take(keyId, rules, keyVersion, pending))
    return outcome === 'stale' ? { kind: 'stale' } : toVerdict(state, rules, at, { charged: outcome === 'charged' })
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota> {
    return this.reconcile(keyId, rules, toRefundDelta(charge))
  }

  /** Adds usage that this replica granted locally. */
  async reconcile(keyId: string, rules: QuotaRules, delta: UsageDelta): Promise<Quota> {
    const { at, state } = await this.#call(keyId, () => this.redis.quotaHash.reconcile(keyId, rules, delta))
    return toUsage(state, rules, at).quota
  }

  /** The state of the key in the last reply. */
  lastState(keyId: string): QuotaState | undefined {
    return this.#lastStates.get(keyId)
  }

  /** The current time on the clock of Redis, estimated from its last reply. */
  now(keyId: string): Instant {
    return { nowMs: this.#sharedClock.nowMs(), phaseSeconds: getMinutePhaseSeconds(keyId) }
  }

  async #call<Reply extends StateReply>(keyId: string, command: () => Promise<Reply>): Promise<Reply> {
    const sentAtMs = this.clock.nowMs()
    const reply = await this.redis.breaker.call(command, keyId)
    this.#sharedClock.observe(reply.at.nowMs, sentAtMs)
    this.#lastStates.set(keyId, reply.state)
    return reply
  }
}
