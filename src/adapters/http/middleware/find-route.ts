import type { Middleware, RequestContext } from '../pipeline/context.js'
import { HttpError } from '../errors/http-error.js'
import type { Routes } from '../pipeline/routing.js'

/** Finds the route first of all, so that what its every answer carries is set before anything can be refused. */
export function findRoute(routes: Routes): Middleware {
  return async function find(ctx, next) {
    const found = routes.find(readablePath(ctx), ctx.method)
    if (found) {
      ctx.state.found = found
      ctx.set(found.headers)
    }
    await next()
  }
}

/** Node passes on whatever stands in the request line, and Koa throws where it is no address, or has no path for one without. */
function readablePath(ctx: RequestContext): string {
  try {
    if (ctx.path) return ctx.path
  } catch (cause) {
    throw new HttpError('bad_request', { message: 'The address in the request line is not valid.', cause })
  }
  throw new HttpError('bad_request', { message: 'The request line has no path.' })
}
