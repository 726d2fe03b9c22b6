import { stringify } from 'yaml'
import type { oas31, ZodOpenApiPathItemObject, ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi'
import { createDocument } from 'zod-openapi'
import { z } from 'zod'
import type { Plans } from '../../../core/plan.js'
import type { ErrorCode } from '../errors/error-catalogue.js'
import { ERROR_CATALOGUE, toErrorBody } from '../errors/error-catalogue.js'
import type { ErrorResponseName } from './error-responses.js'
import { COMMON_ERROR_RESPONSES, ERROR_RESPONSES, listOtherCodes, toStatus } from './error-responses.js'
import {
  DESCRIPTION,
  ERROR_CODE_DESCRIPTION,
  ERROR_DESCRIPTION,
  listErrorHeaders,
  buildHeaders,
  describeSecurity,
  listSuccessHeaders,
} from './openapi-texts.js'
import type { OperationSpec } from '../operations/operation.js'
import { API_PREFIX } from '../operations/operation.js'
import { OPERATIONS } from '../operations/operations.js'

const error = z
  .object({
    code: z
      .string()
      .max(100)
      .meta({
        pattern: '^[a-z_]+$',
        'x-extensible-enum': Object.keys(ERROR_CATALOGUE),
        description: ERROR_CODE_DESCRIPTION,
        example: 'pet_not_found',
      }),
    message: z.string().max(10_000).meta({ description: 'A description of the error for people.', example: 'The pet does not exist.' }),
    status: z.int32().min(400).max(599).meta({ format: 'int32', description: 'The HTTP status code.', example: 404 }),
  })
  .meta({ id: 'Error', description: ERROR_DESCRIPTION })

/** The inputs that differ between deployments. */
export interface OpenApiInputs {
  /** Absolute base URL of the service, without `/v1` and without a trailing slash. */
  readonly serverUrl: string
  readonly plans: Plans
  /** The version of the service. */
  readonly version: string
}

/** Builds the OpenAPI 3.1 document from the schemas that validate requests and from the error catalogue. */
export function buildOpenApiDocument({ serverUrl, plans, version }: OpenApiInputs): oas31.OpenAPIObject {
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Pet Store',
        version,
        description: DESCRIPTION,
        contact: { name: 'Pet Store maintainers', url: `${serverUrl}/docs` },
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
        { name: 'store', description: 'Orders for animals.' },
        { name: 'account', description: 'Your API key.' },
      ],
      paths: buildPaths(OPERATIONS),
      components: {
        headers: buildHeaders(),
        responses: buildErrorResponses(),
        securitySchemes: {
          apiKey: { type: 'http', scheme: 'bearer', bearerFormat: 'pst_live_…', description: describeSecurity(plans) },
        },
      },
    },
    { override: allowAdditionalResponseFields },
  )
}

/** A new field in a response must not break clients that were generated earlier. */
function allowAdditionalResponseFields({
  jsonSchema,
  io,
}: {
  jsonSchema: { additionalProperties?: unknown }
  io: 'input' | 'output'
}): void {
  if (io === 'output') delete jsonSchema.additionalProperties
}

/** Returns the document as text. The YAML has no aliases, because some parsers reject them. */
export function renderOpenApiDocument(inputs: OpenApiInputs, format: 'json' | 'yaml'): string {
  const document = buildOpenApiDocument(inputs)
  return format === 'yaml' ? stringify(document, { aliasDuplicateObjects: false }) : `${JSON.stringify(document, undefined, 2)}\n`
}

/** Builds the paths of the document, with all operations of each path. */
export function buildPaths(specs: readonly OperationSpec[]): Record<string, ZodOpenApiPathItemObject> {
  const paths: Record<string, ZodOpenApiPathItemObject> = {}
  for (const spec of specs) {
    const { operationId, method, path, stability, deprecation, document } = spec
    const operation = {
      operationId,
      ...(stability === 'stable' ? {} : { 'x-stability': stability, 'x-badges': [{ name: stability }] }),
      ...document,
      ...(deprecation && { deprecated: true, 'x-sunset': deprecation.sunset }),
      responses: buildResponses(spec),
    }
    paths[path] = { ...paths[path], [method]: operation }
  }
  return paths
}

function buildResponses(spec: OperationSpec): ZodOpenApiResponsesObject {
  const success = Object.entries(spec.document.responses).map(
    ([status, response]) => [status, { ...response, headers: listSuccessHeaders(spec, Number(status)) }] as const,
  )
  const removal: readonly ErrorResponseName[] = spec.deprecation ? ['OperationRemoved'] : []
  const errors = [...spec.errors, ...removal, ...COMMON_ERROR_RESPONSES].map(
    (name) => [`${toStatus(name)}`, toResponseReference(name)] as const,
  )
  return Object.fromEntries([...success, ...errors, ['default', toResponseReference('Error')]])
}

const toResponseReference = (name: ErrorResponseName | 'Error') => ({ $ref: `#/components/responses/${name}` })

/** Builds the responses of `ERROR_RESPONSES`, and `Error` for `default`. Each has one example per code. */
function buildErrorResponses(): Record<string, ZodOpenApiResponseObject> {
  const names = Object.keys(ERROR_RESPONSES) as ErrorResponseName[]
  return Object.fromEntries([
    ...names.map((name) => [name, buildErrorResponse(toStatus(name), ERROR_RESPONSES[name])] as const),
    ['Error', buildErrorResponse('default', { description: 'Any other error.', codes: listOtherCodes() })],
  ])
}

function buildErrorResponse(
  status: number | 'default',
  { description, codes }: { description: string; codes: readonly ErrorCode[] },
): ZodOpenApiResponseObject {
  const examples = Object.fromEntries(codes.map((code) => [code, { summary: ERROR_CATALOGUE[code].message, value: toErrorBody(code) }]))
  return { description, headers: listErrorHeaders(status), content: { 'application/json': { schema: error, examples } } }
}
