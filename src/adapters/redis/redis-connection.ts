import type { Clock } from '../../core/ports/clock.js'
import { QuotaHash } from './quota-hash.js'
import { RedisCircuitBreaker } from './redis-circuit-breaker.js'
import type { RedisClient } from './redis-client.js'
import { makeRedisClient } from './make-redis-client.js'

/** The maximum time that the service waits for Redis when it starts. */
const START_TIMEOUT_MS = 1_500

/** A connection to Redis with a circuit breaker. */
export class RedisConnection {
  readonly client: RedisClient
  readonly breaker: RedisCircuitBreaker
  readonly quotaHash: QuotaHash

  /** Does not connect. Without `clock`, decisions use the clock of the Redis server. Throws `SettingError` if the URL is malformed. */
  constructor(url: string, { clock }: { clock?: Clock } = {}) {
    this.client = makeRedisClient(url)
    this.quotaHash = new QuotaHash(this.client, clock)
    this.breaker = new RedisCircuitBreaker(this.client, { probe: (_, hashTag) => this.quotaHash.probe(hashTag) })
  }

  /** Resolves when Redis responds, or after 1.5 s. Keeps trying after that. */
  connect(): Promise<void> {
    return this.breaker.connect(START_TIMEOUT_MS)
  }

  close(): Promise<void> {
    return this.breaker.close()
  }
}
