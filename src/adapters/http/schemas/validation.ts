import { z } from 'zod'
import type { ErrorCode } from '../errors/error-catalogue.js'
import { HttpError } from '../errors/http-error.js'

/** Parses `input`. Throws an error with `code` whose message lists `problems` and every failing field, in order. */
export function parseOrThrow<Value>(schema: z.ZodType<Value>, input: unknown, code: ErrorCode, problems: readonly string[] = []): Value {
  const parsed = schema.safeParse(input)
  if (parsed.success && problems.length === 0) return parsed.data
  const found = parsed.success ? [] : parsed.error.issues.flatMap(toProblems)
  throw new HttpError(code, { message: joinProblems([...problems, ...found]) })
}

/** The schema of operations without query parameters. */
export const NO_PARAMETERS = z.strictObject({})

/** Parses a query string. Rejects a repeated parameter, because proxies and servers differ in which of its values they use. */
export function parseQuery<Value>(schema: z.ZodType<Value>, querystring: string): Value {
  const sent = new URLSearchParams(querystring)
  const names = new Set(sent.keys())
  const repeated = names.size === sent.size ? [] : [...names].filter((name) => sent.getAll(name).length > 1)
  const single = [...sent].filter(([name]) => !repeated.includes(name))
  const problems = repeated.map((name) => `${escapeName(name)}: must not be repeated`)
  return parseOrThrow(schema, Object.fromEntries(single), 'invalid_parameter', problems)
}

function toProblems(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((name) => `${escapeName(name)}: unknown parameter`)
  return [`${issue.path.join('.') || 'body'}: ${issue.message}`]
}

/** The known parameters and fields cause fewer problems than this. Only unknown parameters can cause more. */
const MAX_LISTED_PROBLEMS = 20

function joinProblems(problems: readonly string[]): string {
  const unlisted = problems.length - MAX_LISTED_PROBLEMS
  return [...problems.slice(0, MAX_LISTED_PROBLEMS), ...(unlisted > 0 ? [`and ${unlisted} more`] : [])].join('; ')
}

function escapeName(name: string): string {
  return JSON.stringify(truncate(name, 40)).slice(1, -1)
}

export function truncate(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
}
