import { Redis } from 'ioredis'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { SystemClock } from '../../src/adapters/node/system-clock.js'
import { quotaKey } from '../../src/adapters/redis/quota-hash.js'
import type { RedisClient } from '../../src/adapters/redis/redis-client.js'
import { RedisConnection } from '../../src/adapters/redis/redis-connection.js'
import type { RedisCircuitBreakerOptions } from '../../src/adapters/redis/redis-circuit-breaker.js'
import { RedisUnavailable, RedisCircuitBreaker } from '../../src/adapters/redis/redis-circuit-breaker.js'
import { RedisQuotaControl } from '../../src/adapters/redis/redis-quota-control.js'
import { RedisQuotaStore } from '../../src/adapters/redis/redis-quota-store.js'
import type { RejectionCache } from '../../src/adapters/redis/rejection-cache.js'
import type { Clock } from '../../src/core/ports/clock.js'
import { until } from './until.js'

/** What one process of many has of the quotas. */
export interface RedisReplica {
  readonly connection: RedisConnection
  readonly quotas: RedisQuotaStore
  readonly control: RedisQuotaControl
  /** What the breaker told its listeners: `true` for up. */
  readonly changes: readonly boolean[]
  close(): Promise<void>
}

export interface RedisReplicaOptions {
  /** For Redis, too. Without one its own decides. */
  readonly clock?: Clock
  /** Of the replica alone. */
  readonly localClock?: Clock
  /** Of how many it is one. */
  readonly replicas?: number
  readonly rejections?: RejectionCache
  /** Waits for an answer as long as it takes: for what has to be exact on a machine that may be busy with other things. */
  readonly isPatient?: boolean
}

export async function aRedisReplica(url: string, options: RedisReplicaOptions = {}): Promise<RedisReplica> {
  const { clock, localClock = clock ?? new SystemClock(), replicas = 1, rejections, isPatient = false } = options
  const connection = isPatient ? aPatientConnection(url, clock) : new RedisConnection(url, clock ? { clock } : {})
  const changes: boolean[] = []
  connection.breaker.onChange((isUp) => changes.push(isUp))
  const quotas = new RedisQuotaStore({
    redis: connection,
    clock: localClock,
    makeLocalQuotas: (sharedClock, known) => new MemoryQuotaStore(sharedClock, { replicas, known }),
    ...(rejections ? { rejections } : {}),
  })
  await connection.connect()
  return { connection, quotas, control: new RedisQuotaControl(connection), changes, close: () => connection.close() }
}

/** Finds out that Redis is away by closed connections alone. */
export function aPatientConnection(url: string, clock?: Clock): RedisConnection {
  const connection = new RedisConnection(url, clock ? { clock } : {})
  const breaker = new PatientLink(connection.client, { probe: (client) => client.set('probe', '1') })
  return Object.assign(connection, { breaker })
}

class PatientLink extends RedisCircuitBreaker {
  constructor(
    private readonly patientClient: RedisClient,
    options: RedisCircuitBreakerOptions,
  ) {
    super(patientClient, options)
  }

  override async call<Reply>(command: (client: RedisClient) => Promise<Reply>): Promise<Reply> {
    if (!this.isUp) throw new RedisUnavailable('Redis is away', { maybeExecuted: false })
    try {
      return await command(this.patientClient)
    } catch (cause) {
      throw new RedisUnavailable('Redis did not answer', { maybeExecuted: true, cause })
    }
  }
}

/** A connection that looks on, and waits for its answers however long Redis is away. */
export class Onlooker {
  readonly client: Redis

  constructor(url: string) {
    this.client = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
    // Each command waits until there is a connection; without a listener every attempt would be printed.
    this.client.on('error', () => undefined)
  }

  /** The fields of a key's hash as numbers, without those that are 0. */
  async hash(keyId: string): Promise<Record<string, number>> {
    const fields = await this.client.hgetall(quotaKey(keyId))
    return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, Number(value)]))
  }

  /** What was charged to the minute and the day. */
  async used(keyId: string): Promise<[minute: number, day: number]> {
    const { c = 0, e = 0 } = await this.hash(keyId)
    return [c, e]
  }

  /** Puts a hash back as it was. */
  async restore(keyId: string, fields: Record<string, number>): Promise<void> {
    await this.client.multi().del(quotaKey(keyId)).hset(quotaKey(keyId), fields).exec()
  }

  close(): void {
    this.client.disconnect()
  }
}

export function untilUp({ connection }: RedisReplica, withinMs = 8_000): Promise<void> {
  return until('Redis is used again', () => connection.breaker.isUp, withinMs)
}

export function untilUnavailable({ connection }: RedisReplica, withinMs = 8_000): Promise<void> {
  return until('it is seen that Redis is away', () => !connection.breaker.isUp, withinMs)
}
