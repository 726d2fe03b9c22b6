import type { Middleware } from '../context.js'
import { HttpError } from '../http-error.js'
import { isApiPath } from '../routes.js'
import type { ShowAddressQuota } from './authenticate.js'

/** 404, then 405: behind authentication and quota, so that a stranger learns nothing of what is there. */
export function requireRoute({ showAddressQuota }: { showAddressQuota: ShowAddressQuota }): Middleware {
  return async function requireKnownRoute(ctx, next) {
    const { found } = ctx.state
    if (found?.methodAllowed) return next()
    if (!isApiPath(ctx.path)) await showAddressQuota(ctx)
    if (!found) throw new HttpError('not_found')
    throw new HttpError('method_not_allowed', { headers: { Allow: found.allow } })
  }
}
