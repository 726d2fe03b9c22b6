import type { Middleware as KoaMiddleware, ParameterizedContext } from 'koa'
import type { ApiKey } from '../../core/api-key.js'
import type { Verdict } from '../../core/quota.js'
import type { ErrorCode } from './error-catalogue.js'
import type { FoundRoute } from './routes.js'

/** What the pipeline learns of a request, step by step. */
export interface RequestState {
  requestId: string
  /** Absent when no route has the path. */
  found?: FoundRoute
  /** The verified key of the caller. */
  key?: ApiKey
  verdict?: Verdict
  errorCode?: ErrorCode
}

export type RequestContext = ParameterizedContext<RequestState>
export type Middleware = KoaMiddleware<RequestState>

/** The caller's key, behind `authenticate`. */
export function verifiedKey({ state }: RequestContext): ApiKey {
  if (!state.key) throw new Error('This route is reached without authentication')
  return state.key
}

/** Answers with text that is JSON already; the type carries no charset, for JSON has no such parameter (RFC 8259, 11). */
export function answerJson(ctx: RequestContext, status: number, json: string): void {
  ctx.status = status
  ctx.set('Content-Type', 'application/json')
  ctx.body = json
}
