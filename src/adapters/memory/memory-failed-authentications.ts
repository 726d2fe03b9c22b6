import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { AddressQuota } from '../../core/address-quota.js'
import { toAddressQuota, toFailureBucketKey } from '../../core/address-quota.js'
import type { Clock } from '../../core/ports/clock.js'
import type { FailedAuthentications } from '../../core/ports/failed-authentications.js'

/**
 * The library counts failures and removes expired buckets. Its windows begin with the first failure of an IP address, and the end that it
 * reports depends on the system clock, so the number of the minute is part of the bucket key instead.
 */
export class MemoryFailedAuthentications implements FailedAuthentications {
  readonly #limiter: RateLimiterMemory

  /** `perMinute`: failures that an IP address may cause per minute, 1 or more. */
  constructor(
    private readonly perMinute: number,
    private readonly clock: Clock,
  ) {
    this.#limiter = new RateLimiterMemory({ points: perMinute, duration: 60 })
  }

  async peek(address: string): Promise<AddressQuota> {
    const nowMs = this.clock.nowMs()
    const bucket = await this.#limiter.get(toFailureBucketKey(address, nowMs))
    return toAddressQuota(bucket?.consumedPoints ?? 0, this.perMinute, nowMs)
  }

  async count(address: string): Promise<{ admitted: boolean; quota: AddressQuota }> {
    const nowMs = this.clock.nowMs()
    const { consumedPoints } = await this.#limiter.consume(toFailureBucketKey(address, nowMs)).catch(toResult)
    return { admitted: consumedPoints <= this.perMinute, quota: toAddressQuota(consumedPoints, this.perMinute, nowMs) }
  }
}

/** The library rejects its promise with a result if the limit is exceeded, and with an error if it fails. */
function toResult(reason: unknown): RateLimiterRes {
  if (reason instanceof RateLimiterRes) return reason
  throw reason
}
