import { LimitsRequired } from './errors.js'
import type { BanRules, Limits, QuotaRules } from './quota.js'

export const PLAN_NAMES = ['free', 'pro', 'business', 'enterprise'] as const
export type PlanName = (typeof PLAN_NAMES)[number]

export interface Plan {
  /** Absent for a plan whose keys carry their own limits (enterprise). */
  readonly limits?: Limits
  /** `shadow` counts and reports, but refuses nothing. */
  readonly mode: 'enforce' | 'shadow'
}

export interface Plans {
  readonly plans: Readonly<Record<PlanName, Plan>>
  readonly ban: BanRules
  /** Failed authentications that one address may make in a minute. */
  readonly failedAuthenticationsPerMinute: number
}

/** A plan, and the limits that a key has instead of its plan's. */
export interface Subscription {
  readonly plan: PlanName
  readonly limits?: Limits
}

/** Throws `LimitsRequired` for a plan without limits (enterprise) when the key has none of its own either. */
export function requireLimits({ plan, limits }: Subscription, { plans }: Plans): void {
  if (!limits && !plans[plan].limits)
    throw new LimitsRequired(`Plan ${plan} has no limits: give the key its own, for the minute and for the day`)
}

/** A key's own limits go before its plan's. Throws when neither has any: such a key must never have been issued. */
export function quotaRulesFor(key: Subscription & { readonly keyId: string }, { plans, ban }: Plans): QuotaRules {
  const plan = plans[key.plan]
  const limits = key.limits ?? plan.limits
  if (!limits) throw new Error(`Key ${key.keyId} on plan ${key.plan} has no limits`)
  return { limits, mode: plan.mode, ban }
}
