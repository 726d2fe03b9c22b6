import type { Layer } from '@koa/router'
import Router from '@koa/router'
import type { Clock } from '../../../core/ports/clock.js'
import { HttpError } from '../errors/http-error.js'
import type { Call, Operation } from '../operations/operation.js'
import { API_PREFIX, isApiPath } from '../operations/operation.js'
import type { MatchedRoute, Middleware, RequestContext } from './context.js'
import { isRemoved, toDeprecationHeaders } from './deprecation.js'
import type { ReportAddressQuota } from './report-address-quota.js'
import { requireJsonAccepted } from './require-json-accepted.js'
import { respondWithJson } from './respond-with-json.js'

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

/** A registered route. */
interface Route extends Pick<MatchedRoute, 'template' | 'headers' | 'deprecatedOperation'> {
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
  const router = new Router({ sensitive: true, strict: true })
  const routes = new Map<string, Route>()
  const register = (name: string, method: Operation['method'], route: Route) => {
    routes.set(name, route)
    // The router only matches. `callHandler` responds.
    router[method](name, route.template.replaceAll(/\{(\w+)\}/g, ':$1'), async () => {})
  }
  for (const operation of operations) register(operation.operationId, operation.method, toRoute(operation, publicUrl, clock))
  for (const { path, handle } of publicRoutes) register(path, 'get', { template: path, headers: {}, respond: handle })
  const allowByTemplate: Record<string, string> = {}

  const match = (path: string, method: string): MatchedRoute | undefined => {
    const matches = router.match(path, method)
    const [layer] = matches.pathAndMethod
    const [route, ...others] = (layer ? [layer] : matches.path).flatMap(({ name }) => routes.get(name ?? '') ?? [])
    if (!route) return undefined
    const allow = (allowByTemplate[route.template] ??= toAllow(matches.path))
    if (layer) return { ...route, allow, respond: (ctx) => route.respond(ctx, layer.params(path, layer.captures(path))) }
    const headers = others.reduce((all, other) => ({ ...all, ...other.headers }), route.headers)
    return { template: route.template, headers, allow }
  }

  return {
    /** Sets `ctx.state.route` and the headers of the route, so that every response has them. */
    async matchRoute(ctx, next) {
      const route = match(readPath(ctx), ctx.method)
      if (route) {
        ctx.state.route = route
        ctx.set(route.headers)
      }
      await next()
    },

    /** OPTIONS needs no key and is not charged, because browsers send preflight requests without a key. */
    async respondToOptions(ctx, next) {
      if (ctx.method !== 'OPTIONS') return next()
      const allow = ctx.path === '*' ? toAllow(router.stack) : ctx.state.route?.allow
      if (allow === undefined) throw new HttpError('not_found')
      if (isApiPath(ctx.path)) await reportAddressQuota(ctx)
      ctx.status = 204
      ctx.set('Allow', allow)
    },

    async callHandler(ctx) {
      const { route } = ctx.state
      if (!route) throw new HttpError('not_found')
      if (!route.respond) throw new HttpError('method_not_allowed', { headers: { Allow: route.allow } })
      // Node's default 417 response has no body.
      const expectation = ctx.get('Expect').toLowerCase()
      if (expectation && expectation !== '100-continue') throw new HttpError('expectation_failed')
      await route.respond(ctx)
    },
  }
}

function toRoute(operation: Operation, publicUrl: string, clock: Clock): Route {
  const { operationId, path, stability, deprecation, handle } = operation
  return {
    template: API_PREFIX + path,
    headers: {
      ...(stability === 'stable' ? {} : { 'X-Stability': stability }),
      ...(deprecation && toDeprecationHeaders(deprecation, publicUrl)),
    },
    ...(deprecation && { deprecatedOperation: operationId }),
    async respond(ctx, params) {
      requireJsonAccepted(ctx)
      if (deprecation && isRemoved(deprecation, clock.nowMs())) throw new HttpError('operation_removed')
      const { key, deadline } = ctx.state
      if (!key) throw new Error('An operation was called without authentication')
      const pauseDeadline: Call['pauseDeadline'] = (work) => deadline.pauseDuring(work)
      const response = await deadline.race((signal) => handle(ctx, { params, keyId: key.keyId, signal, pauseDeadline }))
      ctx.set(response.headers ?? {})
      if (response.json === undefined) ctx.status = response.status
      else respondWithJson(ctx, response.status, response.json)
    },
  }
}

function toAllow(layers: readonly Layer[]): string {
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
