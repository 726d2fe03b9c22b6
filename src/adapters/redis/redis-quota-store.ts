import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/ports/clock.js'
import type { QuotaStore, StaleKeyRecord } from '../../core/ports/quota-store.js'
import type { Charge, KeyVersion, Quota, QuotaRules, QuotaState, Verdict } from '../../core/quota.js'
import { expiresAtMs, toRefundDelta, toUsage, toVerdict } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { getMinutePhaseSeconds } from '../../core/window.js'
import type { HeartbeatReply } from './heartbeat.js'
import { inBatches } from './in-batches.js'
import type { QuotaReply, StateReply, TakeOptions } from './quota-hash.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'
import type { RedisConnection } from './redis-connection.js'
import { SharedClock } from './shared-clock.js'

/** If more keys are in use, the state of the least recently used ones is unknown when Redis is unavailable or has lost its data. */
export const MAX_KNOWN_KEYS = 50_000
/** Longer than it takes all replicas to notice that Redis has lost data, and to restore what they know. */
const SETTLE_MS = 1_000

const LOST_DATA = 'Redis has lost data'

interface KnownState {
  readonly state: QuotaState
  /** The rules of the most recent decision. */
  readonly rules: QuotaRules
}

/** What this replica knows of the keys of a shard. */
interface Shard {
  /** The epoch that the states belong to. Undefined until Redis has responded. */
  epoch?: string
  /** Whether other replicas may still be restoring what they know. */
  isSettling: boolean
  readonly known: LRUCache<string, KnownState>
}

/** What a replica did and learned without Redis. */
export type Report = Pick<TakeOptions, 'delta' | 'known'>

export interface RedisQuotaStoreOptions {
  /** Called with the number of keys after this replica has restored what it knew. */
  readonly onRestore?: (keyCount: number) => void
  /** Called before a corrupt hash is replaced. */
  readonly onCorruptHash?: (keyId: string) => void
  readonly settleMs?: number
}

/**
 * Quotas that all replicas share: each decision is one round trip. Unlike the port, it throws `RedisUnavailable` during an outage, which
 * `FallbackQuotaStore` handles.
 *
 * If Redis has lost data, this replica restores what it knows before it lets Redis decide again.
 */
export class RedisQuotaStore implements QuotaStore {
  readonly #sharedClock: SharedClock
  readonly #shards = new Map<number, Shard>()
  readonly #settleMs: number

  /** `clock`: the local clock of this replica. */
  constructor(
    private readonly redis: Pick<RedisConnection, 'breaker' | 'quotaHash' | 'keys'>,
    private readonly clock: Clock,
    private readonly options: RedisQuotaStoreOptions = {},
  ) {
    this.#sharedClock = new SharedClock(clock)
    this.#settleMs = options.settleMs ?? SETTLE_MS
    redis.breaker.addGate((shard, reply) => this.#mayUse(shard, reply))
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

  /** Stops using Redis for a shard if its epoch is not the one that this replica knows. */
  checkEpoch(number: number, epoch: string): void {
    const known = this.#getShard(number).epoch
    if (known !== undefined && known !== epoch) this.redis.breaker.open(new Error(LOST_DATA), number)
  }

  /** The state of the key in the last reply. */
  lastState(keyId: string): QuotaState | undefined {
    return this.#shardOf(keyId).known.get(keyId)?.state
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
    const { breaker, keys } = this.redis
    const number = keys.getShard(keyId)
    const shard = this.#getShard(number)
    const { epoch } = shard
    const sentAtMs = this.clock.monotonicMs()
    let reply = await breaker.call(() => command({ epoch, delta, known }), number)
    if (reply.outcome === 'corrupt') {
      this.options.onCorruptHash?.(keyId)
      const last = shard.known.get(keyId)?.state
      const repair = { epoch, delta, known: [...(known ?? []), ...(last ? [last] : [])], isRepair: true }
      reply = await breaker.call(() => command(repair), number)
    }
    if (!('state' in reply)) {
      breaker.open(new Error(LOST_DATA), number)
      throw new RedisUnavailable(LOST_DATA, { maybeExecuted: false })
    }
    this.#sharedClock.observe(reply.at.nowMs, sentAtMs)
    shard.known.set(keyId, { state: reply.state, rules })
    return reply
  }

  /** A gate of the circuit breaker: whether Redis has the data of the shard, as far as replicas know it. */
  async #mayUse(number: number, { epoch, epochAgeMs }: HeartbeatReply): Promise<boolean> {
    const shard = this.#getShard(number)
    if (shard.epoch !== undefined && shard.epoch !== epoch) {
      await this.#restore(shard, epoch)
      shard.isSettling = true
    }
    shard.epoch = epoch
    if (epochAgeMs >= this.#settleMs) shard.isSettling = false
    return !shard.isSettling
  }

  async #restore({ known }: Shard, epoch: string): Promise<void> {
    const { breaker, quotaHash } = this.redis
    const valid = [...known.entries()].filter(([keyId, { state, rules }]) => expiresAtMs(state, rules.ban) > this.now(keyId).nowMs)
    await inBatches(valid, async ([keyId, { state, rules }]) => {
      const { outcome } = await breaker.callThrough(() => quotaHash.reconcile(keyId, rules, { epoch, known: [state], isRepair: true }))
      if (outcome === 'epochChanged') throw new Error(LOST_DATA)
    })
    this.options.onRestore?.(valid.length)
  }

  #shardOf(keyId: string): Shard {
    return this.#getShard(this.redis.keys.getShard(keyId))
  }

  #getShard(number: number): Shard {
    let shard = this.#shards.get(number)
    if (!shard) {
      shard = { isSettling: false, known: new LRUCache({ max: Math.ceil(MAX_KNOWN_KEYS / this.redis.keys.shardCount) }) }
      this.#shards.set(number, shard)
    }
    return shard
  }
}
