import { LRUCache } from 'lru-cache'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { AddressQuota } from '../../core/address-quota.js'
import { addressQuotaAfter, failureBucketKey } from '../../core/address-quota.js'
import type { Clock } from '../../core/ports/clock.js'
import type { FailedAuthentications } from '../../core/ports/failed-authentications.js'
import type { RedisClient } from './redis-client.js'
import type { RedisCircuitBreaker } from './redis-circuit-breaker.js'

/** Beyond this number, an IP address that has reached the limit may cost one more Redis call. */
const REMEMBERED_NAMES = 10_000

/**
 * The library's limiter on Redis, insured by its limiter in this process. As in memory the window is ours: the number of the minute, by
 * the clock of this replica, is part of the name it counts under.
 *
 * This class remembers the names that have reached the limit. The library's `inMemoryBlockOnConsumed` cannot: `get` ignores it, its
 * rejections report 0 points, it expires by the system clock, and it is unbounded.
 */
export class RedisFailedAuthentications implements FailedAuthentications {
  readonly #limiter: RateLimiterRedis
  readonly #exhausted = new LRUCache<string, true>({ max: REMEMBERED_NAMES })

  /** `perMinute`: failures that an address may make in a minute, 1 or more. */
  constructor(
    { client, breaker }: { client: RedisClient; breaker: RedisCircuitBreaker },
    private readonly perMinute: number,
    private readonly clock: Clock,
  ) {
    const options = { points: perMinute, duration: 60, keyPrefix: 'failed-authentications' }
    this.#limiter = new RateLimiterRedis({
      ...options,
      storeClient: new LimiterClient(client, breaker),
      rejectIfRedisNotReady: true,
      insuranceLimiter: new RateLimiterMemory(options),
    })
  }

  async peek(address: string): Promise<AddressQuota> {
    const nowMs = this.clock.nowMs()
    const name = failureBucketKey(address, nowMs)
    if (this.#exhausted.get(name)) return addressQuotaAfter(this.perMinute, this.perMinute, nowMs)
    const counted = await this.#limiter.get(name)
    return this.#quotaAfter(counted?.consumedPoints ?? 0, name, nowMs)
  }

  async count(address: string): Promise<{ admitted: boolean; quota: AddressQuota }> {
    const nowMs = this.clock.nowMs()
    const name = failureBucketKey(address, nowMs)
    if (this.#exhausted.get(name)) return { admitted: false, quota: addressQuotaAfter(this.perMinute, this.perMinute, nowMs) }
    const { consumedPoints } = await this.#limiter.consume(name).catch(asRejection)
    return { admitted: consumedPoints <= this.perMinute, quota: this.#quotaAfter(consumedPoints, name, nowMs) }
  }

  #quotaAfter(counted: number, name: string, nowMs: number): AddressQuota {
    if (counted >= this.perMinute) this.#exhausted.set(name, true)
    return addressQuotaAfter(counted, this.perMinute, nowMs)
  }
}

/** A rejection is rejected by the library, like a failure; it tells as much as an admission does. */
function asRejection(reason: unknown): RateLimiterRes {
  if (reason instanceof RateLimiterRes) return reason
  throw reason
}

type Increment = (args: string[]) => Promise<unknown>

/** As much of a client as the limiter uses, behind the breaker: commands fail in time, and none is sent while Redis is away. */
class LimiterClient {
  constructor(
    private readonly client: RedisClient,
    private readonly breaker: RedisCircuitBreaker,
  ) {}

  get status(): string {
    return this.breaker.isUp ? 'ready' : 'away'
  }

  /** The limiter defines `rlflxIncr`: there may be no other limiter on this client. */
  defineCommand(name: string, definition: { numberOfKeys: number; lua: string }): void {
    this.client.defineCommand(name, definition)
  }

  async rlflxIncr(args: string[]): Promise<unknown> {
    return this.breaker.call((client) => (client as unknown as { rlflxIncr: Increment }).rlflxIncr(args), tagOf(args[0]))
  }

  multi() {
    const commands: [string, string][] = []
    const chain = {
      get: (name: string) => {
        commands.push(['get', name])
        return chain
      },
      pttl: (name: string) => {
        commands.push(['pttl', name])
        return chain
      },
      exec: async () => this.breaker.call((client) => client.multi(commands).exec(), tagOf(commands[0]?.[1])),
    }
    return chain
  }
}

/** What stands in braces. */
function tagOf(name = ''): string | undefined {
  return /\{(.+?)\}/.exec(name)?.[1]
}
