import { FallbackQuotaStore } from '../../../src/adapters/redis/fallback-quota-store.js'
import { Heartbeat } from '../../../src/adapters/redis/heartbeat.js'
import { START_TIMEOUT_MS } from '../../../src/adapters/redis/redis-connection.js'
import type { RedisCall } from '../../../src/adapters/redis/quota-batcher.js'
import { QuotaBatcher } from '../../../src/adapters/redis/quota-batcher.js'
import { QuotaHash } from '../../../src/adapters/redis/quota-hash.js'
import { RedisCircuitBreaker, RedisUnavailable } from '../../../src/adapters/redis/redis-circuit-breaker.js'
import type { RedisClient } from '../../../src/adapters/redis/redis-client.js'
import type { RedisKeys } from '../../../src/adapters/redis/redis-keys.js'
import type { Report, RedisQuotaStoreOptions } from '../../../src/adapters/redis/redis-quota-store.js'
import { RedisQuotaStore } from '../../../src/adapters/redis/redis-quota-store.js'
import { RejectionCache } from '../../../src/adapters/redis/rejection-cache.js'
import { ReplicaRegistry } from '../../../src/adapters/redis/replica-registry.js'
import type { Clock } from '../../../src/core/ports/clock.js'
import type { StaleKeyRecord } from '../../../src/core/ports/quota-store.js'
import type { KeyVersion, Quota, QuotaRules, Verdict } from '../../../src/core/quota.js'
import type { SimulatedClient } from './simulated-client.js'

/** Remembers who decided each request, and notes reports that got no response. Each request has its own rules object. */
export class ObservedQuotaStore extends RedisQuotaStore {
  readonly decidedByRedis = new WeakSet<QuotaRules>()
  readonly decidedLocally = new WeakSet<QuotaRules>()
  readonly maybeCounted = new WeakSet<QuotaRules>()
  /** Whether Redis has replied, so that this replica knows its clock. */
  knowsClock = false
  onUnconfirmedReport: (keyId: string, report: Report) => void = () => undefined

  override async take(keyId: string, rules: QuotaRules, version: KeyVersion, report: Report = {}): Promise<Verdict | StaleKeyRecord> {
    try {
      const verdict = await super.take(keyId, rules, version, report)
      this.knowsClock = true
      this.decidedByRedis.add(rules)
      return verdict
    } catch (error) {
      this.decidedLocally.add(rules)
      if (error instanceof RedisUnavailable && error.maybeExecuted) {
        this.maybeCounted.add(rules)
        this.onUnconfirmedReport(keyId, report)
      }
      throw error
    }
  }

  override async reconcile(keyId: string, rules: QuotaRules, report: Report): Promise<Quota> {
    try {
      const quota = await super.reconcile(keyId, rules, report)
      this.knowsClock = true
      return quota
    } catch (error) {
      if (error instanceof RedisUnavailable && error.maybeExecuted) this.onUnconfirmedReport(keyId, report)
      throw error
    }
  }
}

/** The classes that a simulation uses. Defects are planted by replacing them. */
export interface ReplicaParts {
  readonly store?: typeof ObservedQuotaStore
  readonly fallback?: typeof FallbackQuotaStore
  readonly options?: RedisQuotaStoreOptions
  /** Replaces the number of replicas that shares are based on. */
  readonly count?: () => number
  /** Changes a replica before it starts. */
  readonly change?: (replica: SimulatedReplica) => void
}

/** One process of the service: the real quota stores on a simulated connection. */
export class SimulatedReplica {
  readonly breaker: RedisCircuitBreaker
  readonly registry: ReplicaRegistry
  readonly store: ObservedQuotaStore
  readonly fallback: FallbackQuotaStore
  readonly quotas: RejectionCache
  readonly quotaHash: QuotaHash
  /** `draining`: gets no new requests. */
  status: 'starting' | 'running' | 'draining' | 'stopped' | 'crashed' = 'starting'
  /** The lowest number of replicas at a local decision. */
  lowestCount = Number.POSITIVE_INFINITY

  constructor(
    readonly name: string,
    readonly client: SimulatedClient,
    keys: RedisKeys,
    readonly clock: Clock & { stepMs: number },
    expectedReplicas: number,
    { store: Store = ObservedQuotaStore, fallback: Fallback = FallbackQuotaStore, options = {}, count, change }: ReplicaParts,
  ) {
    const redisClient = client as unknown as RedisClient
    const heartbeat = new Heartbeat(redisClient, keys)
    this.breaker = new RedisCircuitBreaker(redisClient, {
      shardCount: keys.shardCount,
      probe: (shard) => heartbeat.probe(shard),
      replaceConnection: () => client.disconnect(true),
    })
    const makeQuotaHash = (call: RedisCall) => new QuotaHash(new QuotaBatcher(redisClient, keys, call))
    this.quotaHash = makeQuotaHash((command, shard) => this.breaker.call(command, shard))
    const recoveryHash = makeQuotaHash((command) => this.breaker.callThrough(command))
    this.registry = new ReplicaRegistry({ breaker: this.breaker, heartbeat }, expectedReplicas)
    this.store = new Store({ breaker: this.breaker, quotaHash: this.quotaHash, recoveryHash, keys }, clock, options)
    this.registry.onHeartbeat(({ epoch }) => this.store.openIfEpochChanged(0, epoch))
    this.fallback = new Fallback(this.store, this.#watchCount(count), clock)
    this.quotas = new RejectionCache(this.fallback)
    change?.(this)
  }

  async start(): Promise<void> {
    await this.breaker.connect(START_TIMEOUT_MS)
    await this.registry.start()
    if (this.status === 'starting') this.status = 'running'
  }

  /** Shuts down like the service, after the last request. */
  async stop(): Promise<void> {
    await this.fallback.reportPendingUsage()
    await this.registry.close()
    await this.breaker.close()
    if (this.status === 'draining') this.status = 'stopped'
  }

  crash(): void {
    this.status = 'crashed'
    this.client.kill()
    void this.breaker.close()
    void this.registry.close()
  }

  #watchCount(count?: () => number): { readonly count: number } {
    const read = () => {
      this.lowestCount = Math.min(this.lowestCount, this.registry.count)
      return count?.() ?? this.registry.count
    }
    return {
      get count() {
        return read()
      },
    }
  }
}
