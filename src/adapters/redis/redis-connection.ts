import { Cluster, Command } from 'ioredis'
import type { Clock } from '../../core/ports/clock.js'
import { Heartbeat } from './heartbeat.js'
import { makeRedisClient } from './make-redis-client.js'
import type { RedisCall } from './quota-batcher.js'
import { QuotaBatcher } from './quota-batcher.js'
import { QuotaHash } from './quota-hash.js'
import { RedisCircuitBreaker } from './redis-circuit-breaker.js'
import type { RedisClient } from './redis-client.js'
import { CLUSTER_SHARDS, RedisKeys } from './redis-keys.js'

/** The maximum time that the service waits for Redis when it starts. Includes a second if Redis is new or was restarted. */
export const START_TIMEOUT_MS = 2_000

export interface RedisConnectionOptions {
  /** The prefix of all keys. */
  readonly prefix: string
  /** Replaces the clock of the Redis server in decisions. */
  readonly clock?: Clock
}

/** Called after each call of the quota script, which may decide many requests. */
type QuotaCallListener = (elapsedMs: number, result: 'ok' | 'error') => void

/** A connection to Redis with a circuit breaker. */
export class RedisConnection {
  readonly client: RedisClient
  readonly keys: RedisKeys
  readonly quotaHash: QuotaHash
  /** Sends commands even while the circuit breaker is open. */
  readonly recoveryHash: QuotaHash
  readonly heartbeat: Heartbeat
  readonly breaker: RedisCircuitBreaker
  #onQuotaCall: QuotaCallListener = () => undefined

  /** Does not connect. Throws `SettingError` if the URL is malformed. */
  constructor(url: string, { prefix, clock }: RedisConnectionOptions) {
    this.client = makeRedisClient(url)
    this.keys = new RedisKeys(prefix, this.client instanceof Cluster ? CLUSTER_SHARDS : 1)
    const makeQuotaHash = (call: RedisCall) => new QuotaHash(new QuotaBatcher(this.client, this.keys, call), clock)
    this.heartbeat = new Heartbeat(this.client, this.keys)
    this.breaker = new RedisCircuitBreaker(this.client, {
      shardCount: this.keys.shardCount,
      probe: (shard) => this.heartbeat.probe(shard),
      replaceConnection: (shard) => this.#replaceConnection(shard),
    })
    this.quotaHash = makeQuotaHash((command, shard) => this.#measure(command, shard))
    this.recoveryHash = makeQuotaHash((command) => this.breaker.callThrough(command))
  }

  /** Resolves when Redis responds, or after 2 s. Keeps trying after that. */
  connect(): Promise<void> {
    return this.breaker.connect(START_TIMEOUT_MS)
  }

  close(): Promise<void> {
    return this.breaker.close()
  }

  onQuotaCall(listener: QuotaCallListener): void {
    this.#onQuotaCall = listener
  }

  async #measure<Reply>(command: () => Promise<Reply>, shard: number): Promise<Reply> {
    // The breaker then throws without a call.
    if (!this.breaker.isClosed(shard)) return this.breaker.call(command, shard)
    const startedMs = performance.now()
    let result: 'ok' | 'error' = 'error'
    try {
      const reply = await this.breaker.call(command, shard)
      result = 'ok'
      return reply
    } finally {
      this.#onQuotaCall(performance.now() - startedMs, result)
    }
  }

  /** In a Redis Cluster, another node may have taken over the shard. */
  #replaceConnection(shard: number): void {
    const { client } = this
    if (!(client instanceof Cluster)) return client.disconnect(true)
    const slot = new Command('GET', [this.keys.epoch(shard)]).getSlot() ?? 0
    const [address] = client.slots[slot] ?? []
    for (const node of client.nodes()) if (`${node.options.host}:${node.options.port}` === address) node.disconnect()
    client.refreshSlotsCache()
  }
}
