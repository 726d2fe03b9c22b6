import { z } from 'zod'
import type { PlanName, Plans } from './core/plan.js'
import { PLAN_NAMES, PLANS_WITH_LIMITS_PER_KEY } from './core/plan.js'
import { MAX_LIMIT } from './core/quota.js'
import { mapWindows } from './core/window.js'

const LIMIT_CHECK = { error: `must be a whole number from 1 to ${MAX_LIMIT}`, abort: true }
const limit = z.int(LIMIT_CHECK).min(1, LIMIT_CHECK).max(MAX_LIMIT, LIMIT_CHECK)
const limits = z.strictObject(mapWindows(() => limit))
const mode = z.enum(['enforce', 'shadow']).default('enforce')
const plan = (name: PlanName) => z.strictObject({ limits: PLANS_WITH_LIMITS_PER_KEY.has(name) ? limits.exactOptional() : limits, mode })
const durationMs = z.int().min(0)

const plansFile = z.strictObject({
  plans: z.strictObject(Object.fromEntries(PLAN_NAMES.map((name) => [name, plan(name)])) as Record<PlanName, ReturnType<typeof plan>>),
  ban: z
    .strictObject({
      graceMs: durationMs,
      minStrikes: z.int().min(1),
      firstMs: z.int().min(1),
      longestMs: z.int().min(1),
      forgetAfterMs: durationMs,
    })
    .refine(({ firstMs, longestMs }) => firstMs <= longestMs, 'longestMs must not be less than firstMs'),
  failedAuthenticationsPerMinute: limit,
})

/** Parses the text of a plans file, or returns all problems in it. */
export function parsePlans(text: string): Plans | { readonly problems: readonly string[] } {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    return { problems: [`not valid JSON: ${(error as Error).message}`] }
  }
  const parsed = plansFile.safeParse(json, { error: ({ input }) => (input === undefined ? 'is missing' : undefined) })
  if (parsed.success) return parsed.data
  return { problems: parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}`) }
}
