import Koa from 'koa'
import type { Logger } from 'pino'
import type { Clock } from '../../core/ports/clock.js'
import type { FailedAuthentications } from '../../core/ports/failed-authentications.js'
import type { RequestState, Middleware } from './pipeline/context.js'
import type { DocsDeps } from './openapi/docs-routes.js'
import { makeDocsRoutes } from './openapi/docs-routes.js'
import type { Health } from './admin/health.js'
import { makeHealthRoutes } from './admin/health.js'
import type { Metrics } from './admin/metrics.js'
import type { AdmissionDeps } from './middleware/admit-caller.js'
import { admitCaller } from './middleware/admit-caller.js'
import { gatherRequests } from './middleware/gather-requests.js'
import { handleErrors, makeErrorLogger } from './middleware/handle-errors.js'
import { identifyRequest } from './middleware/identify-request.js'
import { limitInFlight } from './middleware/limit-in-flight.js'
import { limitServiceTime } from './middleware/limit-service-time.js'
import { logRequests } from './middleware/log-requests.js'
import { refundFailures } from './middleware/refund-failures.js'
import { requireValidHttp } from './middleware/require-valid-http.js'
import { setSecurityHeaders } from './middleware/set-security-headers.js'
import { makeReportAddressQuota } from './pipeline/report-address-quota.js'
import type { Operation } from './operations/operation.js'
import { isApiPath } from './operations/operation.js'
import { makeRouting } from './pipeline/routing.js'

export interface AppDeps extends AdmissionDeps, DocsDeps {
  readonly operations: readonly Operation[]
  readonly failedAuthentications: FailedAuthentications
  readonly clock: Clock
  readonly health: Health
  readonly metrics: Metrics
  readonly log: Logger
  readonly traceRequests?: Middleware | undefined
  /** Empty if links are relative. */
  readonly publicUrl: string
  /** API requests that may be in flight at the same time. */
  readonly maxInFlight: number
  /** Whether `/docs` and the OpenAPI document are served. */
  readonly hasDocs: boolean
}

/** Builds the pipeline, in the order in which requests pass through it. An error response keeps the headers that earlier middleware set. */
export function makeApp(deps: AppDeps): Koa<RequestState> {
  const publicRoutes = [...makeHealthRoutes(deps.health), ...(deps.hasDocs ? makeDocsRoutes(deps) : [])]
  const reportAddressQuota = makeReportAddressQuota(deps)
  const { matchRoute, respondToOptions, callHandler } = makeRouting({ ...deps, publicRoutes, reportAddressQuota })
  const app = new Koa<RequestState>().on('error', makeErrorLogger(deps.log))
  if (deps.traceRequests) app.use(deps.traceRequests)
  app.use(identifyRequest())
  app.use(logRequests(deps))
  app.use(setSecurityHeaders(deps))
  app.use(handleErrors({ log: deps.log, reportAddressQuota }))
  app.use(requireValidHttp())
  app.use(matchRoute)
  app.use(respondToOptions)
  app.use(restrictToApi(limitInFlight(deps)))
  app.use(limitServiceTime())
  app.use(restrictToApi(gatherRequests()))
  app.use(restrictToApi(admitCaller(deps)))
  app.use(restrictToApi(refundFailures()))
  app.use(callHandler)
  return app
}

/** Runs the middleware only under `/v1`: health checks, the OpenAPI document and the docs page need no key and have no quota. */
function restrictToApi(middleware: Middleware): Middleware {
  return function runOnlyForApi(ctx, next) {
    return isApiPath(ctx.path) ? middleware(ctx, next) : next()
  }
}
