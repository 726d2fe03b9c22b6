import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'

/** Warns once per process: behind a proxy that is not trusted, all clients share the failure limit of the proxy's IP address. */
export function makeForwardedForWarning(deps: { log: Logger; trustedProxyHops: number }): (request: IncomingMessage) => void {
  let isDue = deps.trustedProxyHops === 0
  return (request) => {
    if (!isDue || request.headers['x-forwarded-for'] === undefined) return
    isDue = false
    deps.log.warn(
      'A request has an X-Forwarded-For header, but TRUSTED_PROXY_HOPS is 0, so the header is ignored. If a proxy or load balancer is in front of the service, set TRUSTED_PROXY_HOPS to the number of proxies: otherwise all clients share one failure limit.',
    )
  }
}
