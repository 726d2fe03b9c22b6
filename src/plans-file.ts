import { z } from 'zod'
import type { Plans } from './core/plan.js'
import { MAX_LIMIT } from './core/quota.js'

const LIMIT_CHECK = { error: `must be a whole number from 1 to ${MAX_LIMIT}`, abort: true }
const limit = z.int(LIMIT_CHECK).min(1, LIMIT_CHECK).max(MAX_LIMIT, LIMIT_CHECK)
const limits = z.strictObject({ minute: limit, day: limit })
const mode = z.enum(['enforce', 'shadow']).default('enforce')
const planWithLimits = z.strictObject({ limits, mode })
const durationMs = z.int().min(0)

const plansFile = z.strictObject({
  plans: z.strictObject({
    free: planWithLimits,
    pro: planWithLimits,
    business: planWithLimits,
    enterprise: z.strictObject({ limits: limits.exactOptional(), mode }),
  }),
  ban: z
    .strictObject({
      graceMs: durationMs,
      minStrikes: z.int().min(1),
      firstMs: z.int().min(1),
      longestMs: z.int().min(1),
      forgetAfterMs: durationMs,
    })
    .refine(({ firstMs, longestMs }) => firstMs <= longestMs, 'longestMs must not be below firstMs'),
  failedAuthenticationsPerMinute: limit,
})

/** Reads the text of a plans file, or says all that is wrong with it. */
export function parsePlans(text: string): Plans | { readonly problems: readonly string[] } {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    return { problems: [`no JSON: ${(error as Error).message}`] }
  }
  const parsed = plansFile.safeParse(json)
  if (parsed.success) return parsed.data
  return { problems: parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}`) }
}
