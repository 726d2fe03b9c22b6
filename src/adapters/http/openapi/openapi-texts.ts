import type { oas31 } from 'zod-openapi'
import type { PlanName, Plans } from '../../../core/plan.js'
import { PLAN_NAMES } from '../../../core/plan.js'
import type { Limits } from '../../../core/quota.js'
import { MAX_LIMIT } from '../../../core/quota.js'
import { ERROR_CATALOGUE } from '../errors/error-catalogue.js'
import type { OperationSpec } from '../operations/operation.js'

/** The texts and headers of the OpenAPI document. */

/** Short, because generators copy it into the header of every file that they create. */
export const DESCRIPTION = `
List animals, add an animal and fetch one animal. Every request needs an API key: \`Authorization: Bearer <API_KEY>\`.
Every response has an \`X-Request-Id\`, and quota headers unless the request could not be read. Every error is \`{code, message, status}\`: branch on \`code\`.
The security scheme describes the limits of the plans. The 429 response describes what to do when a limit is reached.
`.trim()

export const describeSecurity = ({ plans }: Plans) =>
  `
Send your API key as \`Authorization: Bearer <API_KEY>\` (RFC 6750). Each key has a plan with two limits, requests per minute and requests per day:

| plan | per minute | per day |
|---|---|---|
${PLAN_NAMES.map((name) => toPlanRow(name, plans[name].limits)).join('\n')}

Windows are fixed: the day resets at 00:00 UTC, and the minute at a second that depends on the key.
Every authenticated request counts, except those that are rejected with 429, those that fail with 5xx, and \`GET /v1/usage\`.
`.trim()

function toPlanRow(name: PlanName, limits: Limits | undefined): string {
  const number = (limit: number | undefined) => limit?.toLocaleString('en') ?? 'custom'
  return `| ${name} | ${number(limits?.minute)} | ${number(limits?.day)} |`
}

export const ERROR_DESCRIPTION =
  'Every error has this body. If a request cannot be parsed as HTTP (400, 408 or 431), the response has no quota headers.'

export const ERROR_CODE_DESCRIPTION = [
  'Identifies the error for programs. New codes may be added: handle unknown codes by their status.',
  '',
  '| code | status | meaning |',
  '|---|---|---|',
  ...Object.entries(ERROR_CATALOGUE).map(([code, { status, message }]) => `| \`${code}\` | ${status} | ${message} |`),
].join('\n')

const SECONDS = { type: 'integer', format: 'int32', minimum: 1, maximum: 2_147_483_647 } as const
const COUNT = { type: 'integer', format: 'int32', minimum: 0, maximum: MAX_LIMIT } as const
const toTextSchema = (pattern: string, maxLength = 1000) => ({ type: 'string', maxLength, pattern }) as const

const HEADERS: Readonly<Record<string, oas31.HeaderObject>> = {
  'X-RateLimit-Limit': {
    description:
      'The limit of the window with the fewest requests remaining, so it may change from the minute to the day. Without a valid key: the failure limit of the IP address, in failed authentications per minute.',
    schema: COUNT,
    example: 60,
  },
  'X-RateLimit-Remaining': { description: 'Requests remaining in that window.', schema: COUNT, example: 59 },
  'X-RateLimit-Reset': {
    description: 'Unix timestamp in seconds at which that window resets, or at which a ban ends.',
    schema: { type: 'integer', format: 'int64', minimum: 0, maximum: 253_402_300_799 },
    example: 1_795_104_060,
  },
  'RateLimit-Policy': {
    description: 'All limits of the caller (draft-ietf-httpapi-ratelimit-headers).',
    schema: toTextSchema('^".+$'),
    example: '"minute";q=60;w=60, "day";q=1000;w=86400',
  },
  RateLimit: {
    description: 'Requests remaining in each window (`r`) and seconds until it resets (`t`).',
    schema: toTextSchema('^".+$'),
    example: '"minute";r=59;t=21, "day";r=999;t=34021',
  },
  'X-Request-Id': {
    description:
      'Identifies this request in our logs: include it when you report an error. It is the ID that you sent, if that matches the pattern.',
    schema: toTextSchema('^[A-Za-z0-9._-]{1,64}$', 64),
    example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
  },
  'Retry-After': {
    description: 'Whole seconds to wait. Exact on 429: a request after that many seconds succeeds. An estimate on 503.',
    schema: SECONDS,
    example: 21,
  },
  'X-API-Key-Expires': {
    description:
      'Present if the API key was rotated and the request used its old secret: the date from which the old secret gets 401. Switch to the new secret before then.',
    schema: toTextSchema('^.+ GMT$', 40),
    example: 'Mon, 23 Nov 2026 09:30:00 GMT',
  },
  'WWW-Authenticate': {
    description: 'How to authenticate (RFC 6750).',
    schema: toTextSchema('^Bearer .+$'),
    example: 'Bearer realm="petstore"',
  },
  Link: {
    description:
      'Lists: `rel="next"` while there are more pages, and `rel="first"` on all pages but the first. Deprecated operations: `rel="successor-version"`.',
    schema: toTextSchema('^<.+$'),
    example: '</v1/pets?limit=20&cursor=b3BhcXVl>; rel="next"',
  },
  Location: { description: 'URL of the new pet.', schema: toTextSchema('^.*/pets/[0-9]+$'), example: '/v1/pets/11' },
  'Idempotent-Replayed': {
    description: 'Present if an earlier request with this `Idempotency-Key` added the pet.',
    schema: { type: 'string', enum: ['true'] },
    example: 'true',
  },
  Deprecation: {
    description: 'Unix timestamp since which the operation has been deprecated (RFC 9745).',
    schema: toTextSchema('^@[0-9]+$', 20),
    example: '@1795132800',
  },
  Sunset: {
    description: 'The date on which the deprecated operation will be removed (RFC 8594).',
    schema: toTextSchema('^.+ GMT$', 40),
    example: 'Thu, 05 Dec 2030 00:00:00 GMT',
  },
  'X-Stability': {
    description: 'Present if the operation may still change: `experimental` or `beta`.',
    schema: toTextSchema('^[a-z]+$', 20),
    example: 'experimental',
  },
  Accept: {
    description: 'The media type that the request body must have. Present if the request had a different one.',
    schema: toTextSchema('^application/json$', 20),
    example: 'application/json',
  },
  'Accept-Encoding': {
    description: 'The content coding that the request body must have. Present if the request had a different one.',
    schema: toTextSchema('^identity$', 10),
    example: 'identity',
  },
}

const QUOTA = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'RateLimit-Policy', 'RateLimit']
/** Error responses are shared by operations that send these and operations that do not. */
const OPERATION_SPECIFIC = ['Deprecation', 'Sunset', 'Link', 'X-Stability']

const NEVER_REQUIRED = ['X-API-Key-Expires', 'Idempotent-Replayed', 'Accept', 'Accept-Encoding']

const OPTIONAL_PREFIX = 'Optional-'

/** `required` is a property of the header object, so a header that some responses may omit has a second component, `Optional-…`. */
export function buildHeaders(): Record<string, oas31.HeaderObject> {
  const required = Object.keys(HEADERS).filter((name) => !NEVER_REQUIRED.includes(name))
  const optional = [...QUOTA, ...OPERATION_SPECIFIC, ...NEVER_REQUIRED]
  return Object.fromEntries([
    ...required.map((name) => [name, { ...HEADERS[name], required: true }]),
    ...optional.map((name) => [OPTIONAL_PREFIX + name, { ...HEADERS[name], required: false }]),
  ]) as Record<string, oas31.HeaderObject>
}

/** References to the headers of the operation's successful response. */
export function listSuccessHeaders(
  { deprecation, document, stability }: OperationSpec,
  status: number,
): Record<string, oas31.ReferenceObject> {
  const isListing = document.requestParams?.query !== undefined
  const required = [
    ...QUOTA,
    'X-Request-Id',
    ...(status === 201 ? ['Location'] : []),
    ...(deprecation ? ['Deprecation', 'Sunset', 'Link'] : []),
    ...(stability === 'stable' ? [] : ['X-Stability']),
  ]
  return toReferences(required, ['X-API-Key-Expires', ...(status === 201 ? ['Idempotent-Replayed'] : []), ...(isListing ? ['Link'] : [])])
}

/** References to the headers of an error response. Some 400 and `default` errors come from the HTTP parser, before the key and its quota are known. */
export function listErrorHeaders(status: number | 'default'): Record<string, oas31.ReferenceObject> {
  const mayLackQuota = status === 400 || status === 'default'
  const required = [
    ...(mayLackQuota ? [] : QUOTA),
    'X-Request-Id',
    ...(status === 401 ? ['WWW-Authenticate'] : []),
    ...(status === 429 || status === 503 ? ['Retry-After'] : []),
  ]
  return toReferences(required, [
    ...(mayLackQuota ? QUOTA : []),
    ...(status === 401 ? [] : ['X-API-Key-Expires']),
    ...(status === 415 ? ['Accept', 'Accept-Encoding'] : []),
    ...OPERATION_SPECIFIC,
  ])
}

function toReferences(required: readonly string[], optional: readonly string[]): Record<string, oas31.ReferenceObject> {
  const reference = (name: string, component: string) => [name, { $ref: `#/components/headers/${component}` }] as const
  return Object.fromEntries([
    ...required.map((name) => reference(name, name)),
    ...optional.map((name) => reference(name, OPTIONAL_PREFIX + name)),
  ])
}
