import type { ZodOpenApiOperationObject } from 'zod-openapi'
import type { Middleware, RequestContext } from '../pipeline/context.js'
import type { ErrorResponseName } from '../openapi/error-responses.js'

/** The path segment that all operations stand below. */
export const API_PREFIX = '/v1'

/** What is fixed about an operation: its place, and all that the OpenAPI document says of it. */
export interface OperationSpec {
  readonly operationId: string
  readonly method: 'get' | 'post'
  /** Below `API_PREFIX`, with parameters in braces: `/pets/{petId}`. */
  readonly path: string
  readonly stability: 'stable' | 'beta' | 'experimental'
  /** Sent with every answer of the path, whatever its status. `publicUrl` is empty where links are relative. */
  readonly headers?: (publicUrl: string) => Readonly<Record<string, string>>
  /** Documented error responses, in addition to `COMMON_ERROR_RESPONSES`. */
  readonly errors: readonly ErrorResponseName[]
  readonly document: Omit<ZodOpenApiOperationObject, 'operationId'>
}

export interface Operation extends OperationSpec {
  /** What runs before `handle`, once the route, the method and Accept are settled. */
  readonly before?: readonly Middleware[]
  readonly handle: (ctx: RequestContext) => Promise<void>
}
