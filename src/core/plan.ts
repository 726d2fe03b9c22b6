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

/** What a key has of a plan. */
interface Subscription {
  readonly keyId: string
  readonly plan: PlanName
  readonly limits?: Limits
}

/** A key's own limits go before its plan's. Throws when neither has any: such a key must never have been issued. */
export function quotaRulesFor(key: Subscription, { plans, ban }: Plans): QuotaRules {
  const plan = plans[key.plan]
  const limits = key.limits ?? plan.limits
  if (!limits) throw new Error(`Key ${key.keyId} on plan ${key.plan} has no limits`)
  return { limits, mode: plan.mode, ban }
}
