import type { IncomingMessage } from 'node:http'
import { isApiPath } from '../operations/operation.js'
import type { Middleware } from '../pipeline/context.js'

export interface RequestTracer {
  /** Runs `serve` in a span, whose parent is in the headers of the request. */
  traceRequest(request: IncomingMessage, serve: (traceId: string) => Promise<ServedRequest>): Promise<void>
}

/** What a span records about a request. Contains nothing that identifies a caller or a pet. */
export interface ServedRequest {
  readonly requestId: string
  /** The template of the path: `/v1/pets/{petId}`. Absent if no route has the path. */
  readonly route?: string
  readonly status: number
  readonly errorCode?: string
}

/** Traces API requests. Health checks and docs are not traced. */
export function traceRequests(tracer: RequestTracer): Middleware {
  return function traceRequest(ctx, next) {
    // `ctx.path` throws if the URL is not valid.
    if (!isApiPath(ctx.url)) return next()
    return tracer.traceRequest(ctx.req, async (traceId) => {
      ctx.state.traceId = traceId
      await next()
      const { requestId, route, errorCode } = ctx.state
      return { requestId, ...(route && { route: route.template }), status: ctx.status, ...(errorCode && { errorCode }) }
    })
  }
}
