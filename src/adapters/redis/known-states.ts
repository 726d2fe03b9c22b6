import { LRUCache } from 'lru-cache'
import type { QuotaRules, QuotaState } from '../../core/quota.js'
import { expiresAtMs } from '../../core/quota.js'
import type { HeartbeatReply } from './heartbeat.js'
import { inBatches } from './in-batches.js'
import type { QuotaHash } from './quota-hash.js'
import type { RedisCircuitBreaker } from './redis-circuit-breaker.js'
import type { RedisKeys } from './redis-keys.js'
import type { SharedClock } from './shared-clock.js'

/** If more keys are in use, the state of the least recently used ones is unknown when Redis is unavailable or has lost its data. */
export const MAX_KNOWN_KEYS = 50_000
/** The time that each replica has to notice that Redis has lost data. Redis is not used before every replica has restored what it knows. */
const SETTLE_MS = 1_000
/** The clock of a server that takes over may be behind the previous one, so that states that have just expired apply again. */
const MAX_CLOCK_STEP_MS = 3_600_000

export const LOST_DATA = 'Redis has lost data'

interface KnownState {
  readonly state: QuotaState
  /** The rules of the most recent decision. */
  readonly rules: QuotaRules
}

/** What this replica knows of a shard. */
interface Shard {
  /** The epoch that the states belong to. Undefined until Redis has responded. */
  epoch?: string
  /** Whether other replicas may still be restoring what they know. */
  isSettling: boolean
  readonly states: LRUCache<string, KnownState>
}

export interface QuotaRedis {
  readonly breaker: RedisCircuitBreaker
  readonly quotaHash: QuotaHash
  /** Sends commands even while the circuit breaker is open. Restores data before it closes. */
  readonly recoveryHash: QuotaHash
  readonly keys: RedisKeys
}

export interface KnownStatesOptions {
  /** Called with the number of keys after this replica has restored what it knew. */
  readonly onRestore?: (keyCount: number) => void
  readonly settleMs?: number
}

/**
 * What this replica knows of each key from the last reply of Redis. If Redis has lost data, the circuit breaker stays open until this replica
 * has restored what it knows, and the other replicas have had time to do the same.
 */
export class KnownStates {
  readonly #shards = new Map<number, Shard>()
  readonly #options: KnownStatesOptions
  readonly #settleMs: number

  constructor(
    private readonly redis: QuotaRedis,
    private readonly clock: SharedClock,
    options: KnownStatesOptions,
  ) {
    this.#options = options
    this.#settleMs = options.settleMs ?? SETTLE_MS
    redis.breaker.addGate((shard, reply) => this.#requireData(shard, reply))
  }

  get(keyId: string): QuotaState | undefined {
    return this.#shardOf(keyId).states.get(keyId)?.state
  }

  set(keyId: string, known: KnownState): void {
    this.#shardOf(keyId).states.set(keyId, known)
  }

  /** The epoch that this replica knows. Undefined until Redis has responded. */
  getEpoch(keyId: string): string | undefined {
    return this.#shardOf(keyId).epoch
  }

  /** Stops using Redis for a shard if its epoch is not the one that this replica knows. */
  openIfEpochChanged(shard: number, epoch: string): void {
    const known = this.#getShard(shard).epoch
    if (known !== undefined && known !== epoch) this.redis.breaker.open(new Error(LOST_DATA), shard)
  }

  /** A gate of the circuit breaker: throws until Redis has the data of the shard, as far as replicas know it. */
  async #requireData(number: number, { epoch, epochAgeMs, isRestoring }: HeartbeatReply): Promise<void> {
    const shard = this.#getShard(number)
    if (shard.epoch !== epoch) {
      if (shard.epoch !== undefined) await this.#restore(shard, epoch)
      shard.epoch = epoch
      shard.isSettling = true
    }
    if (epochAgeMs >= this.#settleMs && !isRestoring) shard.isSettling = false
    if (shard.isSettling) throw new Error(`${LOST_DATA}, and replicas restore what they know`)
  }

  async #restore({ states }: Shard, epoch: string): Promise<void> {
    const sinceMs = this.clock.nowMs() - MAX_CLOCK_STEP_MS
    const valid = [...states.entries()].filter(([, { state, rules }]) => expiresAtMs(state, rules.ban) > sinceMs)
    const announcement = this.#settleMs > 0 ? { restoringMs: this.#settleMs } : {}
    await inBatches(valid, async ([keyId, { state, rules }]) => {
      const { outcome } = await this.redis.recoveryHash.reconcile(keyId, rules, { epoch, known: [state], isRepair: true, ...announcement })
      if (outcome === 'epochChanged') throw new Error(LOST_DATA)
    })
    this.#options.onRestore?.(valid.length)
  }

  #shardOf(keyId: string): Shard {
    return this.#getShard(this.redis.keys.getShard(keyId))
  }

  #getShard(number: number): Shard {
    let shard = this.#shards.get(number)
    if (!shard) {
      shard = { isSettling: false, states: new LRUCache({ max: Math.ceil(MAX_KNOWN_KEYS / this.redis.keys.shardCount) }) }
      this.#shards.set(number, shard)
    }
    return shard
  }
}
