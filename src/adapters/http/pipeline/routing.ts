import type { Layer } from '@koa/router'
import Router from '@koa/router'
import type { Clock } from '../../../core/ports/clock.js'
import { HttpError } from '../errors/http-error.js'
import type { Call, Operation } from '../operations/operation.js'
import { API_PREFIX, isApiPath } from '../operations/operation.js'
import type { MatchedRoute, Middleware, RequestContext, RequestState } from './context.js'
import { toDeprecationHeaders } from './deprecation.js'
import type { ReportAddressQuota } from './report-address-quota.js'
import { requireJsonAccepted } from './require-json-accepted.js'
import { respondWithJson } from './respond-with-json.js'
import { setHeaders } from './set-headers.js'

/** A route outside the API, which needs no key. Responds to GET and HEAD. */
export interface PublicRoute {
  readonly path: string
  readonly handle: (ctx: RequestContext) => Promise<void>
}

interface RoutingDeps {
  readonly operations: readonly Operation[]
  readonly publicRoutes: readonly PublicRoute[]
  readonly publicUrl: string
  readonly clock: Clock
  readonly reportAddressQuota: ReportAddressQuota
}

interface Route extends Pick<MatchedRoute, 'template' | 'headers' | 'deprecatedOperation' | 'isUncharged'> {
  readonly method: Operation['method']
  readonly respond: (ctx: RequestContext, params: Readonly<Record<string, string>>) => Promise<void>
}

/**
 * Makes the three routing steps, between which other middleware runs. Paths are case-sensitive, and a trailing slash makes a different path.
 */
export function makeRouting({ operations, publicRoutes, publicUrl, clock, reportAddressQuota }: RoutingDeps): {
  matchRoute: Middleware
  respondToOptions: Middleware
  callHandler: Middleware
} {
  const router = new Router<RequestState>({ sensitive: true, strict: true })
  const register = (route: Route) => {
    // The router only matches, and `callHandler` responds. For a single path, `register` returns its layer.
    const layer = router.register(route.template.replaceAll(/\{(\w+)\}/g, ':$1'), [route.method], async () => {}) as Layer<RequestState>
    const respond = (ctx: RequestContext) => route.respond(ctx, layer.params(ctx.path, layer.captures(ctx.path)))
    return { layer, route: { ...route, respond } }
  }
  const routes = [
    ...operations.map((operation) => register(toRoute(operation, publicUrl, clock))),
    ...publicRoutes.map(({ path, handle }) => register({ method: 'get', template: path, headers: {}, respond: handle })),
  ]

  const match = (path: string, method: string): MatchedRoute | undefined => {
    const found = routes.find(({ layer }) => layer.methods.includes(method) && layer.match(path))
    if (found) return found.route
    const samePath = routes.filter(({ layer }) => layer.match(path))
    const headers = samePath.reduce((all, { route }) => ({ ...all, ...route.headers }), {})
    return samePath[0] && { template: samePath[0].route.template, headers, allow: toAllow(samePath.map(({ layer }) => layer)) }
  }

  const respondWithAllow = async (ctx: RequestContext) => {
    const allow = ctx.path === '*' ? toAllow(routes.map(({ layer }) => layer)) : ctx.state.route?.allow
    if (allow === undefined) throw new HttpError('not_found')
    if (isApiPath(ctx.path)) await reportAddressQuota(ctx)
    ctx.status = 204
    ctx.set('Allow', allow)
  }

  return {
    /** Sets `ctx.state.route` and the headers of the route, so that every response has them. */
    matchRoute(ctx, next) {
      const route = match(readPath(ctx), ctx.method)
      if (route) {
        ctx.state.route = route
        setHeaders(ctx, route.headers)
      }
      return next()
    },

    /** OPTIONS needs no key and is not charged, because browsers send preflight requests without a key. */
    respondToOptions: (ctx, next) => (ctx.method === 'OPTIONS' ? respondWithAllow(ctx) : next()),

    callHandler(ctx) {
      const { route } = ctx.state
      if (!route) throw new HttpError('not_found')
      if (!route.respond) throw new HttpError('method_not_allowed', { headers: { Allow: route.allow } })
      // Node's default 417 response has no body.
      const expectation = ctx.headers.expect?.toLowerCase()
      if (expectation && expectation !== '100-continue') throw new HttpError('expectation_failed')
      return route.respond(ctx)
    },
  }
}

function toRoute(operation: Operation, publicUrl: string, clock: Clock): Route {
  const { operationId, method, path, stability, deprecation, isUncharged, handle } = operation
  const removedAtMs = deprecation ? Date.parse(deprecation.sunset) : Infinity
  return {
    method,
    template: API_PREFIX + path,
    headers: {
      ...(stability === 'stable' ? {} : { 'X-Stability': stability }),
      ...(deprecation && toDeprecationHeaders(deprecation, publicUrl)),
    },
    ...(deprecation && { deprecatedOperation: operationId }),
    ...(isUncharged && { isUncharged }),
    async respond(ctx, params) {
      requireJsonAccepted(ctx)
      if (clock.nowMs() >= removedAtMs) throw new HttpError('operation_removed')
      const { key, deadline } = ctx.state
      if (!key) throw new Error('An operation was called without authentication')
      const pauseDeadline: Call['pauseDeadline'] = (work) => deadline.pauseDuring(work)
      const response = await deadline.race((signal) => handle(ctx, { params, keyId: key.keyId, signal, pauseDeadline }))
      if (response.headers) setHeaders(ctx, response.headers)
      if (response.json === undefined) ctx.status = response.status
      else respondWithJson(ctx, response.status, response.json)
    },
  }
}

function toAllow(layers: readonly Layer<RequestState>[]): string {
  return [...new Set([...layers.flatMap(({ methods }) => methods), 'OPTIONS'])].toSorted().join(', ')
}

/** Node accepts any request target. If it is not a valid URL, Koa's `ctx.path` throws. If the URL has no path, `ctx.path` is empty. */
function readPath(ctx: RequestContext): string {
  try {
    if (ctx.path) return ctx.path
  } catch (cause) {
    throw new HttpError('bad_request', { message: 'The URL in the request line is not valid.', cause })
  }
  throw new HttpError('bad_request', { message: 'The request line has no path.' })
}
