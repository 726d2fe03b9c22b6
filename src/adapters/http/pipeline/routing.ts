import Router from '@koa/router'
import type { FoundRoute, Middleware } from './context.js'
import { requireJsonAccepted } from '../middleware/require-json-accepted.js'
import type { Operation } from '../operations/operation.js'
import { API_PREFIX } from '../operations/operation.js'

/** Something beside the API that is open to everyone, at an exact path: GET and HEAD. */
export interface PublicRoute {
  readonly path: string
  readonly handle: Middleware
}

export interface Routes {
  find(path: string, method: string): FoundRoute | undefined
  readonly dispatch: Middleware
}

export function isApiPath(path: string): boolean {
  return path === API_PREFIX || path.startsWith(`${API_PREFIX}/`)
}

/** Paths are matched to the letter: case and trailing slashes count. */
export function makeRoutes(operations: readonly Operation[], pages: readonly PublicRoute[], publicUrl: string): Routes {
  const router = new Router({ sensitive: true, strict: true })
  const byId = new Map(operations.map((operation) => [operation.operationId, operation]))
  for (const { operationId, method, path, before = [], handle } of operations) {
    router[method](operationId, API_PREFIX + path.replaceAll(/\{(\w+)\}/g, ':$1'), requireJsonAccepted(), ...before, handle)
  }
  for (const { path, handle } of pages) router.get(path, handle)

  return {
    find(path, method) {
      const matched = router.match(path, method)
      const [layer] = matched.path
      if (!layer) return undefined
      const operation = byId.get(matched.pathAndMethod[0]?.name ?? '')
      const ofPath = matched.path.flatMap(({ name }) => byId.get(name ?? '') ?? [])
      return {
        template: String(layer.path).replaceAll(/:(\w+)/g, '{$1}'),
        allow: [...new Set([...matched.path.flatMap(({ methods }) => methods), 'OPTIONS'])].toSorted().join(', '),
        methodAllowed: matched.route,
        ...(operation?.document.deprecated ? { deprecatedOperation: operation.operationId } : {}),
        headers: Object.assign({}, ...ofPath.map((each) => toHeaders(each, publicUrl))) as Record<string, string>,
      }
    },
    dispatch: router.routes() as unknown as Middleware,
  }
}

function toHeaders({ stability, headers }: Operation, publicUrl: string): Record<string, string> {
  return { ...(stability === 'stable' ? {} : { 'X-Stability': stability }), ...headers?.(publicUrl) }
}
