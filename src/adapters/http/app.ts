import Koa from 'koa'
import type { Logger } from 'pino'
import type { Plans } from '../../core/plan.js'
import type { FailedAuthentications } from '../../core/ports/failed-authentications.js'
import type { Admit } from '../../core/use-cases/admit.js'
import type { RequestState, Middleware } from './pipeline/context.js'
import { docsRoutes } from './openapi/docs-routes.js'
import { securityHeaders } from './pipeline/hardening.js'
import type { Health } from './admin/health.js'
import { healthRoutes } from './admin/health.js'
import type { Metrics } from './admin/metrics.js'
import { admit } from './middleware/admit-caller.js'
import { handleErrors, logStrayErrors } from './middleware/handle-errors.js'
import { handleOptions } from './middleware/handle-options.js'
import { findRoute } from './middleware/find-route.js'
import { identifyRequest } from './middleware/identify-request.js'
import { limitInFlight } from './middleware/limit-in-flight.js'
import { logRequests } from './middleware/log-requests.js'
import { refundFailures } from './middleware/refund-failures.js'
import { requireRoute } from './middleware/require-route.js'
import { requireKnownExpectation } from './middleware/require-known-expectation.js'
import { requireValidHttp } from './middleware/require-valid-http.js'
import { makeReportAddressQuota } from './pipeline/report-address-quota.js'
import type { Operation } from './operations/operation.js'
import { isApiPath, makeRoutes } from './pipeline/routing.js'

export interface AppDeps {
  readonly operations: readonly Operation[]
  readonly admit: Admit
  readonly failedAuthentications: FailedAuthentications
  readonly plans: Plans
  readonly health: Health
  readonly metrics: Metrics
  readonly log: Logger
  /** Empty where links are relative. */
  readonly publicUrl: string
  readonly trustedProxyHops: number
  /** API requests that may be in flight at the same time. */
  readonly maxInFlight: number
  /** Whether `/docs` and the OpenAPI document are served. */
  readonly docs: boolean
}

/** The whole pipeline, in the order in which a request meets it. What is refused early keeps the headers that were set before. */
export function makeApp(deps: AppDeps): Koa<RequestState> {
  const pages = [...healthRoutes(deps.health), ...(deps.docs ? docsRoutes(deps) : [])]
  const routes = makeRoutes(deps.operations, pages, deps.publicUrl)
  const reportAddressQuota = makeReportAddressQuota(deps)
  const app = new Koa<RequestState>()
  app.on('error', logStrayErrors(deps.log))
  app.use(identifyRequest())
  app.use(logRequests(deps))
  app.use(securityHeaders(deps))
  app.use(handleErrors({ log: deps.log, reportAddressQuota }))
  app.use(requireValidHttp())
  app.use(findRoute(routes))
  app.use(handleOptions({ reportAddressQuota }))
  app.use(onApi(limitInFlight(deps.maxInFlight)))
  app.use(onApi(admit(deps)))
  app.use(onApi(refundFailures()))
  app.use(requireRoute())
  app.use(requireKnownExpectation())
  app.use(routes.dispatch)
  return app
}

/** Health, document and docs page are open: no key, no quota. */
function onApi(middleware: Middleware): Middleware {
  return async function onlyOnApi(ctx, next) {
    await (isApiPath(ctx.path) ? middleware(ctx, next) : next())
  }
}
