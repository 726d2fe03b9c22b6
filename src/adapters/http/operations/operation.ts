import type { Cancellation } from '../../../core/cancellation.js'
import type { Context } from 'koa'
import type { ZodOpenApiOperationObject } from 'zod-openapi'
import type { ErrorResponseName } from '../openapi/error-responses.js'

/** The first segment of every operation's path. */
export const API_PREFIX = '/v1'

export function isApiPath(path: string): boolean {
  return path === API_PREFIX || path.startsWith(`${API_PREFIX}/`)
}

/** The routing of an operation and its part of the OpenAPI document. */
export interface OperationSpec {
  readonly operationId: string
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** Relative to `API_PREFIX`, with parameters in braces: `/pets/{petId}`. */
  readonly path: string
  readonly stability: 'stable' | 'beta' | 'experimental'
  /** Requests are not charged and not rejected by quotas. `ctx.state.usage` is the usage of the key. */
  readonly isUncharged?: true
  readonly deprecation?: Deprecation
  /** Documented error responses, in addition to `COMMON_ERROR_RESPONSES`. */
  readonly errors: readonly ErrorResponseName[]
  readonly document: Omit<ZodOpenApiOperationObject, 'operationId'>
}

export interface Deprecation {
  /** The date from which the operation is deprecated, beginning at 00:00 UTC: `2026-11-20`. */
  readonly since: string
  /** The date from which the operation returns 410, beginning at 00:00 UTC. */
  readonly sunset: string
  /** The path of the operation to use instead, relative to `API_PREFIX`. */
  readonly successor: string
}

/** What a handler receives about a request in addition to Koa's context. */
export interface Call {
  /** The values of the path's parameters, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** The ID of the caller's API key. */
  readonly keyId: string
  /** Aborts at the deadline of the request. */
  readonly signal: Cancellation
  /** Runs work whose time does not count toward the deadline. */
  readonly pauseDeadline: <Value>(work: () => Promise<Value>) => Promise<Value>
}

/** What an operation responds with. */
export interface OperationResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Serialized. Absent if the response has no body. */
  readonly json?: string
}

/** Must not change the response in `ctx`, because it may have been sent at the deadline. Returns its parts instead. */
export type Handler = (ctx: Context, call: Call) => Promise<OperationResponse>

/** An operation whose handler has its dependencies. */
export interface Operation extends OperationSpec {
  readonly handle: Handler
}

/** An operation as its file declares it. `Deps` are the ports and settings that it needs. */
export interface OperationDeclaration<Deps> extends OperationSpec {
  readonly makeHandler: (deps: Deps) => Handler
}
