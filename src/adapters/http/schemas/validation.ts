import { z } from 'zod'
import type { Middleware, RequestContext } from '../pipeline/context.js'
import type { ErrorCode } from '../errors/error-catalogue.js'
import { HttpError } from '../errors/http-error.js'

/** The value as the schema reads it. Throws `code` with a message that names every failing field, in order. */
export function valid<Value>(schema: z.ZodType<Value>, input: unknown, code: ErrorCode, problems: readonly string[] = []): Value {
  const parsed = schema.safeParse(input)
  if (parsed.success && problems.length === 0) return parsed.data
  const found = parsed.success ? [] : parsed.error.issues.flatMap(toProblems)
  throw new HttpError(code, { message: listed([...problems, ...found]) })
}

/** The query's parameters. Repeated and unknown ones are refused: proxies and servers differ in which of them they read. */
export function validQuery<Value>(schema: z.ZodType<Value>, ctx: RequestContext): Value {
  const sent = new URLSearchParams(ctx.querystring)
  const names = [...new Set(sent.keys())]
  const isRepeated = (name: string) => sent.getAll(name).length > 1
  const repeated = names.filter(isRepeated).map((name) => `${shown(name)}: must be given once`)
  const given = names.filter((name) => !isRepeated(name)).map((name) => [name, sent.get(name)] as const)
  return valid(schema, Object.fromEntries(given), 'invalid_parameter', repeated)
}

const noParameters = z.strictObject({})

/** For operations without query parameters. */
export function rejectParameters(): Middleware {
  return async function rejectAnyParameter(ctx, next) {
    validQuery(noParameters, ctx)
    await next()
  }
}

function toProblems(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((name) => `${shown(name)}: is not known here`)
  return [`${issue.path.join('.') || 'body'}: ${issue.message}`]
}

/** Everything this service could ask for fails in fewer than this; more are names that the client made up. */
const FAULTS_LISTED = 20

function listed(problems: readonly string[]): string {
  const unlisted = problems.length - FAULTS_LISTED
  return [...problems.slice(0, FAULTS_LISTED), ...(unlisted > 0 ? [`and ${unlisted} more`] : [])].join('; ')
}

/** What the client chose is cut and escaped before it is told back. */
function shown(name: string): string {
  return JSON.stringify(shortened(name, 40)).slice(1, -1)
}

export function shortened(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
}
