import type { Middleware as KoaMiddleware, ParameterizedContext } from 'koa'
import type { ApiKey } from '../../../core/api-key.js'
import type { Quota, Verdict } from '../../../core/quota.js'
import type { ErrorCode } from '../errors/error-catalogue.js'

/** What is known of a request from its path and method alone. */
export interface FoundRoute {
  /** The path as documented: `/v1/pets/{petId}`. */
  readonly template: string
  /** The methods that the path knows, as the Allow header lists them. */
  readonly allow: string
  readonly methodAllowed: boolean
  /** Present when the operation is to be removed. */
  readonly deprecatedOperation?: string
  /** Sent with every answer of the path. */
  readonly headers: Readonly<Record<string, string>>
}

/** What the pipeline learns of a request, step by step. */
export interface RequestState {
  requestId: string
  /** Absent when no route has the path. */
  found?: FoundRoute
  /** The verified key of the caller. */
  key?: ApiKey
  verdict?: Verdict
  /** Undoes the charge. Absent if nothing was charged. */
  refund?: () => Promise<Quota>
  errorCode?: ErrorCode
}

export type RequestContext = ParameterizedContext<RequestState>
export type Middleware = KoaMiddleware<RequestState>

/** The caller's key, behind `authenticate`. */
export function verifiedKey({ state }: RequestContext): ApiKey {
  if (!state.key) throw new Error('This route is reached without authentication')
  return state.key
}

/** TestResponses with text that is JSON already; the type carries no charset, for JSON has no such parameter (RFC 8259, 11). */
export function respondWithJson(ctx: RequestContext, status: number, json: string): void {
  ctx.status = status
  ctx.set('Content-Type', 'application/json')
  ctx.body = json
}
