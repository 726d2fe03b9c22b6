import type { Middleware as KoaMiddleware, ParameterizedContext } from 'koa'
import type { ApiKey } from '../../../core/api-key.js'
import type { KeyUsage } from '../../../core/key-usage.js'
import type { Quota, Verdict } from '../../../core/quota.js'
import type { ErrorCode } from '../errors/error-catalogue.js'
import type { Deadline } from './deadline.js'

/** The route of a request. Has `respond` if the path allows the method, otherwise `allow`. */
export type MatchedRoute = RouteProperties &
  (
    | { readonly respond: (ctx: RequestContext) => Promise<void>; readonly allow?: undefined }
    | { readonly respond?: undefined; readonly allow: string }
  )

interface RouteProperties {
  /** The path as documented: `/v1/pets/{petId}`. */
  readonly template: string
  /** Sent with every response of the route. */
  readonly headers: Readonly<Record<string, string>>
  /** The ID of the operation. Absent unless the operation is deprecated. */
  readonly deprecatedOperation?: string
  /** Whether requests are not charged and not rejected by quotas. */
  readonly isUncharged?: true
}

/** What the pipeline learns about a request, step by step. */
export interface RequestState {
  requestId: string
  /** The ID of the trace that the request belongs to, if the request is traced. */
  traceId?: string
  /** Absent if no route has the path. */
  route?: MatchedRoute
  deadline: Deadline
  /** The verified key of the caller. */
  key?: ApiKey
  /** The end of the grace period, if the secret is the old one of a rotated key. */
  secretExpiresAtMs?: number
  verdict?: Verdict
  /** Present if the operation is uncharged. */
  usage?: KeyUsage
  /** Undoes the charge. Absent if nothing was charged. */
  refund?: () => Promise<Quota>
  errorCode?: ErrorCode
  /** Why a store is unavailable. Present if the request failed because of it. */
  outage?: string
}

export type RequestContext = ParameterizedContext<RequestState>
export type Middleware = KoaMiddleware<RequestState>
