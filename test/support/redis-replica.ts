import { Redis } from 'ioredis'
import { SystemClock } from '../../src/adapters/node/system-clock.js'
import { FallbackQuotaStore } from '../../src/adapters/redis/fallback-quota-store.js'
import { QuotaBatcher } from '../../src/adapters/redis/quota-batcher.js'
import { QuotaHash } from '../../src/adapters/redis/quota-hash.js'
import { FIELDS } from '../../src/adapters/redis/quota-script.js'
import type { RedisCircuitBreakerOptions } from '../../src/adapters/redis/redis-circuit-breaker.js'
import { RedisCircuitBreaker, RedisUnavailable } from '../../src/adapters/redis/redis-circuit-breaker.js'
import type { RedisClient } from '../../src/adapters/redis/redis-client.js'
import { RedisConnection } from '../../src/adapters/redis/redis-connection.js'
import { CLUSTER_SHARDS, RedisKeys } from '../../src/adapters/redis/redis-keys.js'
import { RedisQuotaControl } from '../../src/adapters/redis/redis-quota-control.js'
import { RedisQuotaStore } from '../../src/adapters/redis/redis-quota-store.js'
import { RejectionCache } from '../../src/adapters/redis/rejection-cache.js'
import { ReplicaRegistry } from '../../src/adapters/redis/replica-registry.js'
import type { Clock } from '../../src/core/ports/clock.js'
import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import { until } from './until.js'

/** The default of REDIS_PREFIX. */
export const PREFIX = 'petstore:'

/** The keys on a single server. */
export const KEYS = new RedisKeys(PREFIX, 1)
export const CLUSTER_KEYS = new RedisKeys(PREFIX, CLUSTER_SHARDS)

/** The quota stores of one replica. */
export interface RedisReplica {
  readonly connection: RedisConnection
  readonly quotas: QuotaStore
  readonly fallback: FallbackQuotaStore
  readonly control: RedisQuotaControl
  /** Not started. */
  readonly registry: ReplicaRegistry
  /** The number of keys in each restoration. */
  readonly restored: readonly number[]
  /** The keys whose hash was found corrupt. */
  readonly corrupt: readonly string[]
  /** The errors with which Redis rejected a call although it is available. */
  readonly rejections: readonly unknown[]
  /** The changes that the breaker reported: `true` if it closed. */
  readonly changes: readonly boolean[]
  /** Number of decisions that were requested from Redis. */
  readonly takes: () => number
  close(): Promise<void>
}

export interface RedisReplicaOptions {
  /** Replaces the clock of Redis, too. */
  readonly clock?: Clock
  /** The clock of the replica only. */
  readonly localClock?: Clock
  /** Number of replicas that share the quotas. */
  readonly replicas?: number
  /** How long Redis is not used after it has lost data. 0 unless set. */
  readonly settleMs?: number
  /** 0 caches no rejections. */
  readonly cachedMs?: number
  /** Waits for every response without a timeout, so that results are exact on a busy machine. */
  readonly hasNoTimeout?: boolean
}

export async function aRedisReplica(url: string, options: RedisReplicaOptions = {}): Promise<RedisReplica> {
  const { clock, localClock = clock ?? new SystemClock(), replicas = 1, cachedMs, settleMs = 0, hasNoTimeout = false } = options
  const connection = hasNoTimeout ? aConnectionWithoutTimeout(url, clock) : aRedisConnection(url, clock)
  const changes: boolean[] = []
  connection.breaker.onChange((isUp) => changes.push(isUp))
  let takes = 0
  const { quotaHash } = connection
  const take = quotaHash.take.bind(quotaHash)
  quotaHash.take = (...args) => {
    takes += 1
    return take(...args)
  }
  const [restored, corrupt, rejections]: [number[], string[], unknown[]] = [[], [], []]
  connection.breaker.onRejection((error) => rejections.push(error))
  const store = new RedisQuotaStore(connection, localClock, {
    settleMs,
    onRestore: (keyCount) => restored.push(keyCount),
    onCorruptHash: (keyId) => corrupt.push(keyId),
  })
  const registry = new ReplicaRegistry(connection, replicas)
  registry.onHeartbeat(({ epoch }) => store.openIfEpochChanged(0, epoch))
  const fallback = new FallbackQuotaStore(store, { count: replicas }, localClock)
  const quotas = new RejectionCache(fallback, cachedMs)
  await connection.connect()
  const control = new RedisQuotaControl(connection)
  return {
    ...{ connection, quotas, fallback, control, registry, changes, restored, corrupt, rejections },
    takes: () => takes,
    async close() {
      await registry.close()
      await connection.close()
    },
  }
}

/** Returns the hashes without a circuit breaker. */
export function aQuotaHash(client: RedisClient, clock?: Clock): QuotaHash {
  return new QuotaHash(new QuotaBatcher(client, KEYS, (command) => command()), clock)
}

/** Does not connect. */
export function aRedisConnection(url: string, clock?: Clock): RedisConnection {
  return new RedisConnection(url, { prefix: PREFIX, ...(clock ? { clock } : {}) })
}

/** Returns a connection whose breaker opens only if the connection is closed. */
export function aConnectionWithoutTimeout(url: string, clock?: Clock): RedisConnection {
  const connection = aRedisConnection(url, clock)
  const { client, keys, heartbeat } = connection
  const options = { shardCount: keys.shardCount, probe: (shard: number) => heartbeat.probe(shard), replaceConnection: () => undefined }
  return Object.assign(connection, { breaker: new BreakerWithoutTimeout(client, options) })
}

class BreakerWithoutTimeout extends RedisCircuitBreaker {
  constructor(
    private readonly redisClient: RedisClient,
    options: RedisCircuitBreakerOptions,
  ) {
    super(redisClient, options)
  }

  override async call<Reply>(command: (client: RedisClient) => Promise<Reply>, shard: number): Promise<Reply> {
    if (!this.isClosed(shard)) throw new RedisUnavailable('Redis is unavailable', { maybeExecuted: false })
    try {
      return await command(this.redisClient)
    } catch (cause) {
      throw new RedisUnavailable('Redis did not respond', { maybeExecuted: true, cause })
    }
  }
}

/** Reads and changes the data in Redis directly. Its commands wait until Redis is available. */
export class RedisObserver {
  readonly client: Redis

  constructor(url: string) {
    this.client = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
    // Without a listener, each failed attempt to connect would be printed.
    this.client.on('error', () => undefined)
  }

  /** The values of a key's hash. Values of 0 are absent. */
  async hash(keyId: string): Promise<Partial<Record<keyof typeof FIELDS, number>>> {
    const fields = await this.client.hgetall(KEYS.quota(keyId))
    const values = Object.entries(FIELDS).map(([name, field]) => [name, Number(fields[field] ?? 0)] as const)
    return Object.fromEntries(values.filter(([, value]) => value !== 0))
  }

  /** The requests charged to the minute and the day. */
  async used(keyId: string): Promise<[minute: number, day: number]> {
    const { minuteUsed = 0, dayUsed = 0 } = await this.hash(keyId)
    return [minuteUsed, dayUsed]
  }

  /** Replaces a key's hash. */
  async store(keyId: string, values: Partial<Record<keyof typeof FIELDS, number>>): Promise<void> {
    const fields = Object.entries(values).map(([name, value]) => [FIELDS[name as keyof typeof FIELDS], value] as const)
    await this.client
      .multi()
      .del(KEYS.quota(keyId))
      .hset(KEYS.quota(keyId), Object.fromEntries(fields.filter(([, value]) => value !== 0)))
      .exec()
  }

  close(): void {
    this.client.disconnect()
  }
}

export function untilUp({ connection }: RedisReplica, withinMs = 8_000): Promise<void> {
  return until('the circuit breaker is closed', () => connection.breaker.isUp, withinMs)
}

export function untilUnavailable({ connection }: RedisReplica, withinMs = 8_000): Promise<void> {
  return until('the circuit breaker is open', () => !connection.breaker.isUp, withinMs)
}
