import { LRUCache } from 'lru-cache'
import type { RateLimiterAbstract } from 'rate-limiter-flexible'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { AddressQuota } from '../../core/address-quota.js'
import { toAddressQuota, toFailureBucketKey } from '../../core/address-quota.js'
import type { Clock } from '../../core/ports/clock.js'
import type { FailedAuthentications } from '../../core/ports/failed-authentications.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'
import type { RedisConnection } from './redis-connection.js'

/** The maximum number of cached IP addresses that have reached the limit. Each further one may cost one more Redis call. */
const MAX_EXHAUSTED = 10_000

/**
 * Counts in Redis, with the limiter of the library and the circuit breaker, and in this process while Redis is unavailable. A failure whose
 * reply is lost may be counted in both. As in memory, the number of the minute is part of the bucket key.
 *
 * This class caches the buckets that have reached the limit. The library's `inMemoryBlockOnConsumed` does not fit: `get` ignores it, its
 * rejections report 0 points, it expires by the system clock, and it is unbounded.
 */
export class RedisFailedAuthentications implements FailedAuthentications {
  readonly #shared: RateLimiterRedis
  readonly #local: RateLimiterMemory
  readonly #exhausted = new LRUCache<string, true>({ max: MAX_EXHAUSTED })

  /** `perMinute`: failures that an IP address may cause per minute, 1 or more. */
  constructor(
    private readonly redis: Pick<RedisConnection, 'client' | 'breaker' | 'keys'>,
    private readonly perMinute: number,
    private readonly clock: Clock,
  ) {
    const options = { points: perMinute, duration: 60, keyPrefix: redis.keys.failurePrefix }
    // Defines the command `rlflxIncr` on the client, so the client must have no limiter with another script.
    this.#shared = new RateLimiterRedis({ ...options, storeClient: redis.client })
    this.#local = new RateLimiterMemory(options)
  }

  async peek(address: string): Promise<AddressQuota> {
    const { quota } = await this.#run(address, async (limiter, key) => (await limiter.get(key))?.consumedPoints ?? 0)
    return quota
  }

  async count(address: string): Promise<{ admitted: boolean; quota: AddressQuota }> {
    const { failureCount, quota } = await this.#run(
      address,
      async (limiter, key) => (await limiter.consume(key).catch(toResult)).consumedPoints,
    )
    return { admitted: failureCount <= this.perMinute, quota }
  }

  /** `command` resolves to the number of failures so far. It is not called if the bucket is known to have reached the limit. */
  async #run(address: string, command: (limiter: RateLimiterAbstract, key: string) => Promise<number>) {
    const nowMs = this.clock.nowMs()
    const bucketKey = toFailureBucketKey(address, nowMs)
    const failureCount = this.#exhausted.get(bucketKey) ? this.perMinute + 1 : await this.#runUncached(address, bucketKey, command)
    if (failureCount >= this.perMinute) this.#exhausted.set(bucketKey, true)
    return { failureCount, quota: toAddressQuota(failureCount, this.perMinute, nowMs) }
  }

  async #runUncached(
    address: string,
    bucketKey: string,
    command: (limiter: RateLimiterAbstract, key: string) => Promise<number>,
  ): Promise<number> {
    const { breaker, keys } = this.redis
    const key = keys.failureBucket(address, bucketKey)
    try {
      return await breaker.call(() => command(this.#shared, key), keys.getShard(address))
    } catch (error) {
      if (!(error instanceof RedisUnavailable)) throw error
      return command(this.#local, key)
    }
  }
}

/** The library rejects its promise with a result if the limit is exceeded, and with an error if it fails. */
function toResult(reason: unknown): RateLimiterRes {
  if (reason instanceof RateLimiterRes) return reason
  throw reason
}
