import type { Context } from 'koa'
import type { AddressQuota } from '../../../core/address-quota.js'
import type { Quota, WindowQuota } from '../../../core/quota.js'

/**
 * What the caller's key has left, as the triple (of the binding window) and the IETF draft's fields (of both).
 * A ban ends within a second: its Reset is rounded up, and `waitSeconds` says what Retry-After says.
 */
export function setKeyQuota(ctx: Context, quota: Quota, waitSeconds?: number): void {
  setTriple(ctx, quota.binding)
  ctx.set('RateLimit-Policy', `"minute";q=${quota.minute.limit};w=60, "day";q=${quota.day.limit};w=86400`)
  ctx.set('RateLimit', `"minute";${left(quota.minute, quota.nowMs, waitSeconds)}, "day";${left(quota.day, quota.nowMs, waitSeconds)}`)
}

/** What the caller's address has left of failed authentications: all there is to say where no key was verified. */
export function setAddressQuota(ctx: Context, quota: AddressQuota): void {
  setTriple(ctx, quota)
  ctx.set('RateLimit-Policy', `"failed-authentications";q=${quota.limit};w=60`)
  ctx.set('RateLimit', `"failed-authentications";${left(quota, quota.nowMs)}`)
}

/** Whole seconds until an instant given in Unix seconds, rounded up so that waiting them is enough. */
export function secondsUntil(unixSeconds: number, nowMs: number): number {
  return Math.ceil((unixSeconds * 1000 - nowMs) / 1000)
}

function setTriple(ctx: Context, { limit, remaining, resetSeconds }: WindowQuota): void {
  ctx.set('X-RateLimit-Limit', `${limit}`)
  ctx.set('X-RateLimit-Remaining', `${remaining}`)
  ctx.set('X-RateLimit-Reset', `${resetSeconds}`)
}

function left({ remaining, resetSeconds }: WindowQuota, nowMs: number, waitSeconds = secondsUntil(resetSeconds, nowMs)): string {
  return `r=${remaining};t=${waitSeconds}`
}
