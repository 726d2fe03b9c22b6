import type { WindowQuota } from './quota.js'
import { windowNumber, windowResetSeconds } from './window.js'

/** What an address has left of failed authentications for this minute. `nowMs` is the clock that decided, Unix time in milliseconds. */
export interface AddressQuota extends WindowQuota {
  readonly nowMs: number
}

/** What a failure of an address at this instant (Unix time in milliseconds) is counted under: the address and the minute. */
export function failureBucketKey(address: string, nowMs: number): string {
  return `{${address}} ${windowNumber('minute', { nowMs, phaseSeconds: 0 })}`
}

/** After `counted` failures in this minute, of `perMinute` that an address may make. */
export function addressQuotaAfter(counted: number, perMinute: number, nowMs: number): AddressQuota {
  const at = { nowMs, phaseSeconds: 0 }
  const resetSeconds = windowResetSeconds('minute', windowNumber('minute', at), at)
  return { nowMs, limit: perMinute, remaining: Math.max(0, perMinute - counted), resetSeconds }
}
