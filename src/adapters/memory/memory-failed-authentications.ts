import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { AddressQuota } from '../../core/address-quota.js'
import { addressQuotaAfter, failureBucketKey } from '../../core/address-quota.js'
import type { Clock } from '../../core/ports/clock.js'
import type { FailedAuthentications } from '../../core/ports/failed-authentications.js'

/**
 * The library counts and forgets; the window is ours. Its own windows begin with an address's first failure, and the end
 * it reports moves with the clock that reads it, so the number of the minute is made part of the name it counts under.
 */
export class MemoryFailedAuthentications implements FailedAuthentications {
  readonly #limiter: RateLimiterMemory

  /** `perMinute`: failures that an address may make in a minute, 1 or more. */
  constructor(
    private readonly perMinute: number,
    private readonly clock: Clock,
  ) {
    this.#limiter = new RateLimiterMemory({ points: perMinute, duration: 60 })
  }

  async peek(address: string): Promise<AddressQuota> {
    const nowMs = this.clock.nowMs()
    const counted = await this.#limiter.get(failureBucketKey(address, nowMs))
    return addressQuotaAfter(counted?.consumedPoints ?? 0, this.perMinute, nowMs)
  }

  async count(address: string): Promise<{ admitted: boolean; quota: AddressQuota }> {
    const nowMs = this.clock.nowMs()
    const counted = await this.#limiter.consume(failureBucketKey(address, nowMs)).catch(asRejection)
    return { admitted: counted.consumedPoints <= this.perMinute, quota: addressQuotaAfter(counted.consumedPoints, this.perMinute, nowMs) }
  }
}

/** A rejection is rejected by the library, like a failure; it tells as much as an admission does. */
function asRejection(reason: unknown): RateLimiterRes {
  if (reason instanceof RateLimiterRes) return reason
  throw reason
}
