import ipaddr from 'ipaddr.js'
import type { RequestContext } from '../pipeline/context.js'
import { respondWithJson } from '../pipeline/respond-with-json.js'
import type { PublicRoute } from '../pipeline/routing.js'

export interface DemoKeyDeps {
  /** The host name or IP address that the API listens on. */
  readonly host: string
  readonly publicUrl: string
  readonly trustedProxyHops: number
  /** The secrets of the demo keys, which the service issues at start. Empty in distributed mode. */
  readonly demoSecrets: readonly string[]
}

/**
 * The API key that the docs page fills in: a demo key for users of this machine, and none for everyone else. The response keeps the
 * default `no-store`, so the key is in no cache.
 */
export function makeDemoKeyRoute({ host, publicUrl, trustedProxyHops, demoSecrets }: DemoKeyDeps): PublicRoute {
  const isForThisMachine = isLoopback(host) && publicUrl === '' && trustedProxyHops === 0
  return {
    path: '/docs/demo-key.json',
    async handle(ctx) {
      const secret = isForThisMachine && isLocalRequest(ctx) ? demoSecrets[0] : undefined
      respondWithJson(ctx, 200, JSON.stringify({ secret }))
    },
  }
}

/**
 * With DNS rebinding, the page of an attacker has the same origin as the service, but another name in `Host`. Proxies and tunnels that
 * replace `Host` add `X-Forwarded-For` or `Forwarded`.
 */
function isLocalRequest(ctx: RequestContext): boolean {
  return isLoopback(ctx.hostname) && ctx.get('X-Forwarded-For') === '' && ctx.get('Forwarded') === ''
}

function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  return bare === 'localhost' || (ipaddr.isValid(bare) && ipaddr.process(bare).range() === 'loopback')
}
