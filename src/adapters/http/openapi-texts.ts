import type { oas31 } from 'zod-openapi'
import type { PlanName, Plans } from '../../core/plan.js'
import { PLAN_NAMES } from '../../core/plan.js'
import type { Limits } from '../../core/quota.js'
import { ERROR_CATALOGUE } from './error-catalogue.js'
import type { OperationSpec } from './operation.js'

/** What the OpenAPI document says in words, and of headers. */

export const description = ({ plans }: Plans) =>
  `
An HTTP and JSON interface to a store of animals: list them, add one, fetch one.

**Authentication.** Send your API key as \`Authorization: Bearer <API_KEY>\`.

**Quotas.** A plan has two limits: requests per minute and requests per day (UTC).

| Plan | per minute | per day |
|---|---|---|
${PLAN_NAMES.map((name) => planRow(name, plans[name].limits)).join('\n')}

- Every answer of an operation carries \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\`. They describe the window with the fewest
  requests left, so that late in a day they may change from the minute to the day. \`RateLimit-Policy\` and \`RateLimit\` describe both.
- Windows are fixed: the day begins at 00:00 UTC, the minute at a second of its own for each key.
- A refused request costs nothing. Wait for the time in \`Retry-After\` (whole seconds): it is exact.
- Who goes on sending after a 429 is banned for a while, first for 60 seconds and then twice as long each time.
- A request that fails by our fault (5xx) is given back.
- Answers without a verified key describe what the caller's address has left of failed authentications.

**Numbers.** \`categoryId\` is an int64 and kept to the last digit: read it with a parser that does not round. Assigned ids are at most 2^53-1.

**Errors.** Every error is \`{code, message, status}\`; branch on \`code\`. Quote \`X-Request-Id\` when you report one.
What is no readable HTTP request is refused before any operation, with 400, 408 or 431, the same body and \`X-Request-Id\`, but without quota headers.
`.trim()

function planRow(name: PlanName, limits: Limits | undefined): string {
  const number = (limit: number | undefined) => limit?.toLocaleString('en') ?? 'custom'
  return `| ${name} | ${number(limits?.minute)} | ${number(limits?.day)} |`
}

export const ERROR_DESCRIPTION = [
  'What is wrong, for programs.',
  '',
  '| code | status | meaning |',
  '|---|---|---|',
  ...Object.entries(ERROR_CATALOGUE).map(([code, { status, message }]) => `| \`${code}\` | ${status} | ${message} |`),
].join('\n')

const SECONDS = { type: 'integer', format: 'int32', minimum: 1, maximum: 2_147_483_647 } as const
const COUNT = { type: 'integer', format: 'int32', minimum: 0, maximum: 2_147_483_647 } as const
const text = (pattern: string, maxLength = 1000) => ({ type: 'string', maxLength, pattern }) as const

const TEXTS: Record<string, oas31.HeaderObject> = {
  'X-RateLimit-Limit': { description: 'The limit of the window that binds the caller.', schema: COUNT, example: 60 },
  'X-RateLimit-Remaining': { description: 'Requests remaining in that window.', schema: COUNT, example: 59 },
  'X-RateLimit-Reset': {
    description: 'Unix time in seconds at which that window, or a ban, ends.',
    schema: { type: 'integer', format: 'int64', minimum: 0, maximum: 253_402_300_799 },
    example: 1_795_104_060,
  },
  'RateLimit-Policy': {
    description: 'All limits of the caller (draft-ietf-httpapi-ratelimit-headers).',
    schema: text('^"'),
    example: '"minute";q=60;w=60, "day";q=1000;w=86400',
  },
  RateLimit: {
    description: 'What is left of each (`r`) and the seconds until it resets (`t`).',
    schema: text('^"'),
    example: '"minute";r=59;t=21, "day";r=999;t=34021',
  },
  'X-Request-Id': {
    description: 'Names this request in our logs. Yours, if you sent one that fits the pattern.',
    schema: text('^[A-Za-z0-9._-]{1,64}$', 64),
    example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
  },
  'Retry-After': {
    description: 'Whole seconds to wait. On 429 it is exact: after that long the next request is served. On 503 it is an estimate.',
    schema: SECONDS,
    example: 21,
  },
  'WWW-Authenticate': { description: 'How to authenticate (RFC 6750).', schema: text('^Bearer '), example: 'Bearer realm="petstore"' },
  Link: {
    description:
      'Pages: `rel="next"` while there is more, `rel="first"` behind the first. Deprecated operations: `rel="successor-version"`.',
    schema: text('^<'),
    example: '</v1/pets?limit=20&cursor=b3BhcXVl>; rel="next"',
  },
  Location: { description: 'The address of the new pet.', schema: text('/pets/[0-9]+$'), example: '/v1/pets/11' },
  'Idempotent-Replayed': {
    description: 'Present when an earlier request with this Idempotency-Key had added the pet.',
    schema: { type: 'string', enum: ['true'] },
    example: 'true',
  },
  Deprecation: {
    description: 'Unix time since when the operation is deprecated (RFC 9745).',
    schema: text('^@[0-9]+$', 20),
    example: '@1795132800',
  },
  Sunset: { description: 'When the operation is removed (RFC 8594).', schema: text(' GMT$', 40), example: 'Thu, 05 Dec 2030 00:00:00 GMT' },
  'X-Stability': {
    description: 'How far the shape of this operation may be relied on.',
    schema: { type: 'string', enum: ['experimental', 'beta'] },
    example: 'experimental',
  },
  Accept: {
    description: 'What the body must be, where its media type was wrong.',
    schema: text('^application/json$', 20),
    example: 'application/json',
  },
  'Accept-Encoding': {
    description: 'What the body must be, where it was compressed.',
    schema: text('^identity$', 10),
    example: 'identity',
  },
}

/** Headers that only some of the answers they are declared on carry. */
const OPTIONAL = new Set(['Link', 'Idempotent-Replayed', 'Accept', 'Accept-Encoding'])

/** Headers of the answers, by name. */
export const HEADERS: Record<string, oas31.HeaderObject> = Object.fromEntries(
  Object.entries(TEXTS).map(([name, header]) => [name, { ...header, required: !OPTIONAL.has(name) }]),
)

const EVERY_ANSWER = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'RateLimit-Policy', 'RateLimit', 'X-Request-Id']

/** References to the headers that an answer of this operation and status carries. */
export function headersOf({ document, path, stability }: OperationSpec, status: number): Record<string, oas31.ReferenceObject> {
  // These come mostly from the server itself, which has read no key and knows no quota.
  if (status === 408 || status === 431) return references(['X-Request-Id'])
  const isListing = status === 200 && !path.includes('{')
  return references([
    ...EVERY_ANSWER,
    ...(status === 201 ? ['Location', 'Idempotent-Replayed'] : []),
    ...(isListing ? ['Link'] : []),
    ...(document.deprecated ? ['Deprecation', 'Sunset', 'Link'] : []),
    ...(stability === 'stable' ? [] : ['X-Stability']),
    ...(status === 401 ? ['WWW-Authenticate'] : []),
    ...(status === 429 || status === 503 ? ['Retry-After'] : []),
    ...(status === 415 ? ['Accept', 'Accept-Encoding'] : []),
  ])
}

function references(names: readonly string[]): Record<string, oas31.ReferenceObject> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}
