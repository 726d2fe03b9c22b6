import { LimitsRequired } from './errors.js'
import type { BanRules, Limits, QuotaRules } from './quota.js'

export const PLAN_NAMES = ['free', 'pro', 'business', 'enterprise'] as const
export type PlanName = (typeof PLAN_NAMES)[number]

/** The plans that may omit limits, because each of their keys can carry its own. */
export const PLANS_WITH_LIMITS_PER_KEY: ReadonlySet<PlanName> = new Set(['enterprise'])

export interface Plan {
  /** Absent if each key of the plan carries its own limits. */
  readonly limits?: Limits
  /** `shadow` counts and reports, but rejects nothing. */
  readonly mode: 'enforce' | 'shadow'
}

export interface Plans {
  readonly plans: Readonly<Record<PlanName, Plan>>
  readonly ban: BanRules
  /** Failed authentications allowed per IP address and minute. */
  readonly failedAuthenticationsPerMinute: number
}

/** The plan of a key and, if set, limits that replace the plan's limits. */
export interface Subscription {
  readonly plan: PlanName
  readonly limits?: Limits
}

/** Throws `LimitsRequired` if neither the key nor its plan has limits. */
export function requireLimits({ plan, limits }: Subscription, { plans }: Plans): void {
  if (!limits && !plans[plan].limits) throw new LimitsRequired(`Plan ${plan} requires limits on the key, per minute and per day`)
}

/**
 * Returns the rules for a key. The key's own limits replace the plan's. Throws if neither has limits, which `requireLimits` prevents unless
 * the plans file changes.
 */
export function toQuotaRules(key: Subscription & { readonly keyId: string }, { plans, ban }: Plans): QuotaRules {
  const plan = plans[key.plan]
  const limits = key.limits ?? plan.limits
  if (!limits) throw new Error(`Key ${key.keyId} on plan ${key.plan} has no limits`)
  return { limits, mode: plan.mode, ban }
}
