import type { Clock } from '../../core/ports/clock.js'
import type { QuotaStore, StaleKeyRecord } from '../../core/ports/quota-store.js'
import type { UsageReader } from '../../core/ports/usage-reader.js'
import type { Charge, KeyVersion, Quota, QuotaRules, QuotaState, QuotaUsage, Verdict } from '../../core/quota.js'
import { isStale, toRefundDelta, toUsage, toVerdict } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { getMinutePhaseSeconds } from '../../core/window.js'
import type { KnownStatesOptions, QuotaRedis } from './known-states.js'
import { KnownStates, LOST_DATA } from './known-states.js'
import type { QuotaReply, StateReply, TakeOptions } from './quota-hash.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'
import { SharedClock } from './shared-clock.js'

/** What a replica did and learned without Redis. */
export type Report = Pick<TakeOptions, 'delta' | 'known'>

export interface RedisQuotaStoreOptions extends KnownStatesOptions {
  /** Called before a corrupt hash is replaced. */
  readonly onCorruptHash?: (keyId: string) => void
  /** Called for each request that starts a ban. */
  readonly onBan?: () => void
}

/**
 * Quotas that all replicas share: each decision is one round trip. Unlike the ports, it throws `RedisUnavailable` during an outage, which
 * `FallbackQuotaStore` handles.
 */
export class RedisQuotaStore implements QuotaStore, UsageReader {
  readonly #sharedClock: SharedClock
  readonly #knownStates: KnownStates

  /** `clock`: the local clock of this replica. */
  constructor(
    private readonly redis: QuotaRedis,
    private readonly clock: Clock,
    private readonly options: RedisQuotaStoreOptions = {},
  ) {
    this.#sharedClock = new SharedClock(clock)
    this.#knownStates = new KnownStates(redis, this.#sharedClock, options)
  }

  /** Whether Redis is used for decisions on the key. */
  isUp(keyId: string): boolean {
    return this.redis.breaker.isClosed(this.redis.keys.getShard(keyId))
  }

  /** Calls the listener when Redis is used again for some keys. */
  onUp(listener: () => void): void {
    this.redis.breaker.onClose(listener)
  }

  /** Counts what this replica reports before it decides, unless the record is stale. */
  async take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion, report: Report = {}): Promise<Verdict | StaleKeyRecord> {
    const { outcome, at, state } = await this.#call(keyId, rules, report, (options) =>
      this.redis.quotaHash.take(keyId, rules, keyVersion, options),
    )
    if (outcome === 'banned') this.options.onBan?.()
    if (outcome === 'stale') return { kind: 'stale', knownVersion: state.keyVersion }
    return toVerdict(state, rules, at, { charged: outcome === 'done' })
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota> {
    return this.reconcile(keyId, rules, { delta: toRefundDelta(charge) })
  }

  /** Counts what this replica reports. */
  async reconcile(keyId: string, rules: QuotaRules, report: Report): Promise<Quota> {
    const { at, state } = await this.#call(keyId, rules, report, (options) => this.redis.quotaHash.reconcile(keyId, rules, options))
    return toUsage(state, rules, at).quota
  }

  async readUsage(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<QuotaUsage | StaleKeyRecord> {
    const { quotaHash } = this.redis
    const { at, state } = await this.#call(keyId, rules, {}, (options) =>
      options.isRepair ? quotaHash.reconcile(keyId, rules, options) : quotaHash.peek(keyId, rules, options),
    )
    return isStale(keyVersion, state.keyVersion) ? { kind: 'stale', knownVersion: state.keyVersion } : toUsage(state, rules, at)
  }

  /** Stops using Redis for a shard if its epoch is not the one that this replica knows. */
  openIfEpochChanged(shard: number, epoch: string): void {
    this.#knownStates.openIfEpochChanged(shard, epoch)
  }

  /** The state of the key in the last reply. */
  lastState(keyId: string): QuotaState | undefined {
    return this.#knownStates.get(keyId)
  }

  /** The current time on the clock of Redis, estimated from its last reply. */
  now(keyId: string): Instant {
    return { nowMs: this.#sharedClock.nowMs(), phaseSeconds: getMinutePhaseSeconds(keyId) }
  }

  async #call(
    keyId: string,
    rules: QuotaRules,
    { delta, known }: Report,
    command: (options: TakeOptions) => Promise<QuotaReply>,
  ): Promise<StateReply> {
    const epoch = this.#knownStates.getEpoch(keyId)
    let sentAtMs = this.clock.monotonicMs()
    let reply = await command({ epoch, delta, known })
    if (reply.outcome === 'corrupt') {
      this.options.onCorruptHash?.(keyId)
      const last = this.lastState(keyId)
      sentAtMs = this.clock.monotonicMs()
      reply = await command({ epoch, delta, known: [...(known ?? []), ...(last ? [last] : [])], isRepair: true })
    }
    if (!('state' in reply)) {
      this.redis.breaker.open(new Error(LOST_DATA), this.redis.keys.getShard(keyId))
      throw new RedisUnavailable(LOST_DATA, { maybeExecuted: false })
    }
    this.#sharedClock.observe(reply.at.nowMs, sentAtMs)
    this.#knownStates.set(keyId, { state: reply.state, rules })
    return reply
  }
}
