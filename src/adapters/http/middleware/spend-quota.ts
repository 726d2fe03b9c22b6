import type { Plans } from '../../../core/plan.js'
import { quotaRulesFor } from '../../../core/plan.js'
import type { QuotaStore } from '../../../core/ports/quota-store.js'
import type { Refusal } from '../../../core/quota.js'
import type { Middleware } from '../context.js'
import { verifiedKey } from '../context.js'
import type { ErrorCode } from '../error-catalogue.js'
import { HttpError, toHttpError } from '../http-error.js'
import { setKeyQuota } from '../quota-headers.js'

/** Charges the caller one request, reports what is left, and gives it back when the failure is ours. */
export function spendQuota({ quotas, plans }: { quotas: QuotaStore; plans: Plans }): Middleware {
  return async function spendOne(ctx, next) {
    const key = verifiedKey(ctx)
    const rules = quotaRulesFor(key, plans)
    const verdict = await quotas.take(key.keyId, rules)
    ctx.state.verdict = verdict
    setKeyQuota(ctx, verdict.quota, verdict.kind === 'banned' ? verdict.retryAfterSeconds : undefined)
    if (verdict.kind !== 'admitted') throw tooMany(verdict)

    try {
      await next()
    } catch (thrown) {
      const ourFault = toHttpError(thrown).status >= 500
      if (ourFault && 'charge' in verdict) {
        const refunding = quotas.refund(key.keyId, verdict.charge, rules)
        setKeyQuota(ctx, await refunding.catch((refundError: unknown) => Promise.reject(withBoth(thrown, refundError))))
      }
      throw thrown
    }
  }
}

/** The answer to the request's own failure; the log tells of both. */
function withBoth(thrown: unknown, refundError: unknown): HttpError {
  const { code, message, headers } = toHttpError(thrown)
  return new HttpError(code, {
    message,
    headers,
    cause: new AggregateError([thrown, refundError], 'A request failed, and so did its refund'),
  })
}

function tooMany(refusal: Refusal): HttpError {
  return new HttpError(codeOf(refusal), { headers: { 'Retry-After': `${refusal.retryAfterSeconds}` } })
}

function codeOf({ kind, window }: Refusal): ErrorCode {
  switch (kind) {
    case 'banned':
      return 'key_temporarily_banned'
    case 'exhausted':
      return window === 'day' ? 'daily_quota_exceeded' : 'rate_limit_exceeded'
  }
}
