import { z } from 'zod'
import { PLAN_NAMES } from '../../../core/plan.js'
import { MAX_LIMIT } from '../../../core/quota.js'

const count = z.int32().min(0).max(MAX_LIMIT)
const time = z.string().meta({ override: { type: 'string', format: 'date-time' } })

const windowUsage = z
  .object({
    limit: count.min(1).meta({ format: 'int32', description: 'Requests per window.', example: 60 }),
    used: count.meta({
      format: 'int32',
      description:
        'Requests counted in this window. Exceeds the limit if the plan was changed to a lower limit. An estimate while Redis is unavailable.',
      example: 12,
    }),
    remaining: count.meta({ format: 'int32', description: 'Requests remaining. 0 during a ban.', example: 48 }),
    resetsAt: time.meta({ description: 'When the window ends and `used` becomes 0.', example: '2026-11-22T12:01:22.000Z' }),
  })
  .meta({ id: 'WindowUsage', description: 'The usage of the key in the current minute or in the current day in UTC.' })

const ban = z
  .object({ endsAt: time.meta({ description: 'When the ban ends.', example: '2026-11-22T12:05:41.250Z' }) })
  .meta({ id: 'Ban', description: 'A temporary block of the key.' })

export const usage = z
  .object({
    plan: z
      .string()
      .max(20)
      .meta({ pattern: '^[a-z]+$', 'x-extensible-enum': PLAN_NAMES, description: 'The plan of the key.', example: 'free' }),
    minute: windowUsage,
    day: windowUsage,
    ban: ban.nullable().meta({ description: 'The ban of the key, or null if the key is not banned.' }),
  })
  .meta({ id: 'Usage' })
