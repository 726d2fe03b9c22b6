import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { AddressQuota } from '../../../core/address-quota.js'
import type { Quota, WindowQuota } from '../../../core/quota.js'

/**
 * Sets the quota headers of an API key: the three `X-RateLimit` headers for the binding window, and the fields of the IETF draft for both windows.
 * During a ban, `retryAfterSeconds` is the value of Retry-After. It may be less than the time until X-RateLimit-Reset, which is rounded up to a
 * full second.
 */
export function setKeyQuotaHeaders({ res }: Context, quota: Quota, retryAfterSeconds?: number): void {
  setRateLimitHeaders(res, quota.binding)
  res.setHeader('RateLimit-Policy', `"minute";q=${quota.minute.limit};w=60, "day";q=${quota.day.limit};w=86400`)
  res.setHeader(
    'RateLimit',
    `"minute";${formatWindow(quota.minute, quota.nowMs, retryAfterSeconds)}, "day";${formatWindow(quota.day, quota.nowMs, retryAfterSeconds)}`,
  )
}

/** Sets the quota headers of an IP address, whose quota is the number of failed authentications. */
export function setAddressQuotaHeaders({ res }: Context, quota: AddressQuota): void {
  setRateLimitHeaders(res, quota)
  res.setHeader('RateLimit-Policy', `"failed-authentications";q=${quota.limit};w=60`)
  res.setHeader('RateLimit', `"failed-authentications";${formatWindow(quota, quota.nowMs)}`)
}

/** Returns the whole seconds until a Unix timestamp, rounded up so that a retry after that time is not too early. */
export function computeSecondsUntil(unixSeconds: number, nowMs: number): number {
  return Math.ceil((unixSeconds * 1000 - nowMs) / 1000)
}

function setRateLimitHeaders(res: ServerResponse, { limit, remaining, resetSeconds }: WindowQuota): void {
  res.setHeader('X-RateLimit-Limit', `${limit}`)
  res.setHeader('X-RateLimit-Remaining', `${remaining}`)
  res.setHeader('X-RateLimit-Reset', `${resetSeconds}`)
}

function formatWindow(
  { remaining, resetSeconds }: WindowQuota,
  nowMs: number,
  waitSeconds = computeSecondsUntil(resetSeconds, nowMs),
): string {
  return `r=${remaining};t=${waitSeconds}`
}
