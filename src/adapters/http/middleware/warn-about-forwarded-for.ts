import type { Logger } from 'pino'
import type { Middleware } from '../context.js'

/** Warns once per process: behind a proxy that is not trusted, all clients share the failure limit of the proxy's IP address. */
export function warnAboutForwardedFor({ log, trustedProxyHops }: { log: Logger; trustedProxyHops: number }): Middleware {
  let isDue = trustedProxyHops === 0
  return async function warnOnce(ctx, next) {
    if (isDue && ctx.req.headers['x-forwarded-for'] !== undefined) {
      isDue = false
      log.warn(
        'A request has an X-Forwarded-For header, but TRUSTED_PROXY_HOPS is 0, so the header is ignored. If a proxy or load balancer is in front of the service, set TRUSTED_PROXY_HOPS to the number of proxies: otherwise all clients share one limit of failed authentications.',
      )
    }
    await next()
  }
}
