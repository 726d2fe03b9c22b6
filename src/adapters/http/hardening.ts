import type { ServerOptions } from 'node:http'
import type { Middleware } from 'koa'

/** All that protects the service from hostile or broken clients, in one place. */

/** Bytes of a request body: a pet takes less than 1 KiB. */
export const BODY_LIMIT_BYTES = 64 * 1024

/** Levels of arrays and objects in a body: a pet has one. */
export const JSON_DEPTH_LIMIT = 32

/** The longest that a body may take to arrive; below `requestTimeout`, so that this answer still has all its headers. */
export const BODY_TIMEOUT_MS = 15_000

export const SERVER_OPTIONS: ServerOptions = {
  // Slow clients: headers, then the whole request, must arrive within these.
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  // Longer than the idle time of the load balancers in front (60 s as a rule): else they send into a closing connection.
  keepAliveTimeout: 75_000,
  maxHeaderSize: 8 * 1024,
  // Node's own answer to a missing Host has no body: `requireSoundRequest` answers instead.
  requireHostHeader: false,
  insecureHTTPParser: false,
}

/** API responses are data: nothing in them is to be run, framed, sniffed or stored. */
export function securityHeaders({ publicUrl }: { publicUrl: string }): Middleware {
  // Over plain HTTP, browsers ignore it; and a host that serves HTTP only must not promise HTTPS for a year.
  const strictTransportSecurity = publicUrl.startsWith('https://') ? { 'Strict-Transport-Security': 'max-age=31536000' } : {}
  return async function setSecurityHeaders(ctx, next) {
    ctx.set('X-Content-Type-Options', 'nosniff')
    ctx.set('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'")
    ctx.set('Cache-Control', 'no-store')
    ctx.set('Referrer-Policy', 'no-referrer')
    ctx.set('Cross-Origin-Resource-Policy', 'same-origin')
    ctx.set(strictTransportSecurity)
    await next()
  }
}

/**
 * For the docs page: its own scripts and styles, and calls to this origin. Styles in the page are what the
 * documentation component sets on its own elements; scripts in the page stay forbidden.
 */
export const DOCS_CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
