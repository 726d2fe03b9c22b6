import { z } from 'zod'
import { isInt64 } from '../../../core/int64.js'

/**
 * The building blocks of the schemas. A schema validates input, provides its type and is part of the OpenAPI document.
 * The document has no bounds for int64, because JSON writers would round them to values outside its range.
 */

/** Makes the error message for a value: `is required` if it is missing, otherwise `must be …`. */
export const mustBe = (what: string) => ({
  error: ({ input }: { input: unknown }) => (input === undefined ? 'is required' : `must be ${what}`),
})

export const INT64 = { type: 'integer', format: 'int64' } as const

const mustBeInt64 = mustBe('a whole number from -2^63 to 2^63-1')

export const int64 = z.bigint(mustBeInt64).refine(isInt64, mustBeInt64)

export const ASSIGNED_ID = { ...INT64, minimum: 1, maximum: Number.MAX_SAFE_INTEGER } as const

export const assignedId = z.bigint().meta({ override: ASSIGNED_ID })

const PAGE_LIMIT_MAX = 100
const PAGE_LIMIT_DEFAULT = 20

export const pageLimit = z
  .string()
  .refine((text) => /^[1-9]\d{0,2}$/.test(text) && Number(text) <= PAGE_LIMIT_MAX, mustBe(`a whole number from 1 to ${PAGE_LIMIT_MAX}`))
  .transform(Number)
  .default(PAGE_LIMIT_DEFAULT)
  .meta({
    override: { type: 'integer', format: 'int32', minimum: 1, maximum: PAGE_LIMIT_MAX, default: PAGE_LIMIT_DEFAULT },
    description: 'Maximum number of items in the response.',
  })

/** Has no example, because API clients that import the document would send it. */
export const cursor = z
  .string()
  .meta({ override: { type: 'string', maxLength: 200, pattern: '^[A-Za-z0-9_-]+$' } })
  .exactOptional()
  .meta({ description: 'Opaque. Follow the `rel="next"` URL of the `Link` header instead of setting it yourself.' })

const CONTROLS = String.raw`\x00-\x1F\x7F-\x9F`
/** White space, including tab to carriage return, but no other control character. */
const TRIMMED = String.raw`[^\S\x00-\x08\x0E-\x1F\x7F-\x9F]`

/**
 * Matches text that, once trimmed, is not empty and has no control characters. Exact in ECMA-262, and limited to syntax that Java, Python,
 * RE2 and .NET support: no lookaround, \p or \u. Matches in linear time, because adjacent quantifiers share no character.
 * docs/decisions/0018-openapi-document.md lists the differences in engines with another \s.
 */
export const TRIMMED_TEXT_PATTERN = String.raw`^${TRIMMED}*[^\s${CONTROLS}][^${CONTROLS}]*([\x09-\x0D]${TRIMMED}*)?$`
