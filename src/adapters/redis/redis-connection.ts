import type { Clock } from '../../core/ports/clock.js'
import { KeyChanges } from './key-changes.js'
import { QuotaHash } from './quota-hash.js'
import type { RedisClient } from './redis-client.js'
import { makeRedisClient } from './redis-client.js'
import { RedisCircuitBreaker } from './redis-circuit-breaker.js'

/** How long a start waits for Redis before it goes on without. */
const START_TIMEOUT_MS = 1_500

/** Everything that speaks to one Redis: a connection for commands with the breaker around it, and one that listens. */
export class RedisConnection {
  readonly client: RedisClient
  readonly breaker: RedisCircuitBreaker
  readonly quotaHash: QuotaHash
  readonly keyChanges: KeyChanges

  /** Nothing is connected yet. Without a clock the server's own decides. Throws `SettingError` for a URL that cannot be read. */
  constructor(url: string, { clock }: { clock?: Clock } = {}) {
    this.client = makeRedisClient(url)
    this.quotaHash = new QuotaHash(this.client, clock)
    this.breaker = new RedisCircuitBreaker(this.client, { probe: (_, hashTag) => this.quotaHash.probe(hashTag) })
    this.keyChanges = new KeyChanges({ publisher: this.client, subscriber: makeRedisClient(url) })
  }

  /** Resolves when Redis answers, or a little later when it does not; then it goes on trying. */
  async connect(): Promise<void> {
    this.keyChanges.listen()
    await this.breaker.connect(START_TIMEOUT_MS)
  }

  async close(): Promise<void> {
    this.keyChanges.close()
    await this.breaker.close()
  }
}
