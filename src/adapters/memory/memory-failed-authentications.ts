import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Clock } from '../../core/ports/clock.js'
import type { AddressQuota, FailedAuthentications } from '../../core/ports/failed-authentications.js'
import type { Instant } from '../../core/quota.js'
import { windowNumber, windowResetSeconds } from '../../core/quota.js'

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
    const at = this.#now()
    const counted = await this.#limiter.get(nameOf(address, at))
    return this.#quota(counted?.consumedPoints ?? 0, at)
  }

  async count(address: string): Promise<{ admitted: boolean; quota: AddressQuota }> {
    const at = this.#now()
    try {
      const counted = await this.#limiter.consume(nameOf(address, at))
      return { admitted: true, quota: this.#quota(counted.consumedPoints, at) }
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal
      return { admitted: false, quota: this.#quota(this.perMinute, at) }
    }
  }

  #now(): Instant {
    return { nowMs: this.clock.nowMs(), phaseSeconds: 0 }
  }

  #quota(counted: number, at: Instant): AddressQuota {
    const resetSeconds = windowResetSeconds('minute', windowNumber('minute', at), at)
    return { nowMs: at.nowMs, limit: this.perMinute, remaining: Math.max(0, this.perMinute - counted), resetSeconds }
  }
}

function nameOf(address: string, at: Instant): string {
  return `${address} ${windowNumber('minute', at)}`
}
