import { STATUS_CODES } from 'node:http'
import { stringify } from 'yaml'
import type { oas31, ZodOpenApiPathItemObject, ZodOpenApiResponsesObject } from 'zod-openapi'
import { createDocument } from 'zod-openapi'
import { z } from 'zod'
import type { Plans } from '../../core/plan.js'
import type { ErrorCode } from './error-catalogue.js'
import { ERROR_CATALOGUE, errorBody } from './error-catalogue.js'
import { description, ERROR_DESCRIPTION, HEADERS, headersOf } from './openapi-texts.js'
import { createPetSpec } from './operations/create-pet.js'
import { getPetSpec } from './operations/get-pet.js'
import { listOrdersSpec } from './operations/list-orders.js'
import { listPetsSpec } from './operations/list-pets.js'
import type { OperationSpec } from './operation.js'
import { API_PREFIX } from './operation.js'

export const OPERATION_SPECS: readonly OperationSpec[] = [listPetsSpec, createPetSpec, getPetSpec, listOrdersSpec]

/** Codes that any operation may answer with. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  'bad_request',
  'missing_api_key',
  'invalid_api_key',
  'not_acceptable',
  'request_timeout',
  'expectation_failed',
  'rate_limit_exceeded',
  'daily_quota_exceeded',
  'key_temporarily_banned',
  'too_many_failed_authentications',
  'headers_too_large',
  'internal_error',
  'service_unavailable',
]

const error = z
  .object({
    code: z.enum(Object.keys(ERROR_CATALOGUE) as ErrorCode[]).meta({ description: ERROR_DESCRIPTION, example: 'pet_not_found' }),
    message: z
      .string()
      .max(10_000)
      .meta({ pattern: '\\S', description: 'What is wrong, for people.', example: 'The pet could not be found.' }),
    status: z.int32().min(400).max(599).meta({ format: 'int32', description: 'The HTTP status.', example: 404 }),
  })
  .meta({ id: 'Error' })

/** What differs from one installation to the next. */
export interface OpenApiFacts {
  /** Absolute, without `/v1`. */
  readonly serverUrl: string
  readonly plans: Plans
}

/** The OpenAPI 3.1 document, from the schemas that validate and the catalogue that answers. */
export function buildOpenApiDocument({ serverUrl, plans }: OpenApiFacts): oas31.OpenAPIObject {
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Pet Store',
      version: '1.0.0',
      description: description(plans),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [
      {
        url: serverUrl + API_PREFIX,
        description: 'The environment, production or staging, that serves this document.',
        'x-internal': false,
      },
    ],
    security: [{ apiKey: [] }],
    tags: [
      { name: 'pets', description: 'The animals of the store.' },
      { name: 'store', description: 'What was ordered.' },
    ],
    paths: pathsOf(OPERATION_SPECS),
    components: {
      headers: HEADERS,
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'pst_live_…',
          description: 'The API key, sent as `Authorization: Bearer <API_KEY>` (RFC 6750).',
        },
      },
    },
  })
}

/** The document as text; in YAML every value is spelt out, for some readers refuse aliases. */
export function openApiText(facts: OpenApiFacts, format: 'json' | 'yaml'): string {
  const document = buildOpenApiDocument(facts)
  return format === 'yaml' ? stringify(document, { aliasDuplicateObjects: false }) : `${JSON.stringify(document, undefined, 2)}\n`
}

function pathsOf(specs: readonly OperationSpec[]): Record<string, ZodOpenApiPathItemObject> {
  const paths: Record<string, ZodOpenApiPathItemObject> = {}
  for (const spec of specs) {
    const stability = spec.stability === 'stable' ? {} : { 'x-stability': spec.stability, 'x-scalar-stability': spec.stability }
    const operation = { operationId: spec.operationId, ...stability, ...spec.document, responses: responsesOf(spec) }
    paths[spec.path] = { ...paths[spec.path], [spec.method]: operation }
  }
  return paths
}

/** The success that the spec describes and, by status, the errors with an example of each code. All with the headers they carry. */
function responsesOf(spec: OperationSpec): ZodOpenApiResponsesObject {
  const success = Object.entries(spec.document.responses).map(
    ([status, response]) => [status, { ...response, headers: headersOf(spec, Number(status)) }] as const,
  )
  const codes = [...spec.errors, ...COMMON_ERRORS]
  const statuses = [...new Set(codes.map((code) => ERROR_CATALOGUE[code].status))].toSorted((a, b) => a - b)
  const errors = statuses.map((status) => {
    const ofStatus = [...new Set(codes)].filter((code) => ERROR_CATALOGUE[code].status === status)
    const examples = Object.fromEntries(ofStatus.map((code) => [code, { summary: ERROR_CATALOGUE[code].message, value: errorBody(code) }]))
    const description = `${STATUS_CODES[status]}: ${ofStatus.map((code) => `\`${code}\``).join(', ')}.`
    return [
      `${status}`,
      { description, headers: headersOf(spec, status), content: { 'application/json': { schema: error, examples } } },
    ] as const
  })
  return Object.fromEntries([...success, ...errors])
}
