import type { Middleware } from '../context.js'
import type { Routes } from '../routes.js'

/** Finds the route first of all, so that what its every answer carries is set before anything can be refused. */
export function findRoute(routes: Routes): Middleware {
  return async function find(ctx, next) {
    const found = routes.find(ctx.path, ctx.method)
    if (found) {
      ctx.state.found = found
      ctx.set(found.headers)
    }
    await next()
  }
}
