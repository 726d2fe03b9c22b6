import type { WindowQuota } from './quota.js'
import { getWindowNumber, getWindowResetSeconds } from './window.js'

/** How many more failed authentications an IP address may cause in the current minute. */
export interface AddressQuota extends WindowQuota {
  /** Unix time in milliseconds at which the quota was read, on the clock that defines the minute. */
  readonly nowMs: number
}

/** Returns the key of the counter for an IP address and the minute of `nowMs` (Unix time in milliseconds). */
export function toFailureBucketKey(address: string, nowMs: number): string {
  return `${address} ${getWindowNumber('minute', { nowMs, phaseSeconds: 0 })}`
}

/** Returns the quota after `failureCount` failures in the minute of `nowMs` (Unix time in milliseconds), with a limit of `perMinute`. */
export function toAddressQuota(failureCount: number, perMinute: number, nowMs: number): AddressQuota {
  const at = { nowMs, phaseSeconds: 0 }
  const resetSeconds = getWindowResetSeconds('minute', getWindowNumber('minute', at), at)
  return { nowMs, limit: perMinute, remaining: Math.max(0, perMinute - failureCount), resetSeconds }
}
