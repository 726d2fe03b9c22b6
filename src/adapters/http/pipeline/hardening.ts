import type { ServerOptions } from 'node:http'
import type { Middleware } from 'koa'

/** All that protects the service from hostile or broken clients, in one place. */

/** Bytes of a request body: a pet takes less than 1 KiB. */
export const BODY_LIMIT_BYTES = 64 * 1024

/** Levels of arrays and objects in a body: a pet has one. */
export const JSON_DEPTH_LIMIT = 32

/** The longest that a body may take to arrive; below `requestTimeout`, so that the 408 still has all its headers. */
export const BODY_TIMEOUT_MS = 15_000

/** A connection without reads or writes for this long is closed, even if requests are in flight on it. */
export const STALLED_SOCKET_MS = 30_000

/** A connection with more unfinished responses is closed: each uses memory or a file descriptor, and no real client pipelines as many. */
export const PIPELINE_LIMIT = 32

/** How long a connection stays open after the server has ended its side, so that the client can read the last response. */
export const LINGER_MS = 1_000

export const SERVER_OPTIONS: ServerOptions = {
  // Slow clients: headers, then the whole request, must arrive within these.
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  // Longer than the idle time of the load balancers in front (60 s as a rule): else they send into a closing connection.
  keepAliveTimeout: 75_000,
  maxHeaderSize: 8 * 1024,
  // Node's own response to a missing Host has no body: `requireValidHttp` responds instead.
  requireHostHeader: false,
  insecureHTTPParser: false,
}

/** API responses are data: nothing in them is to be run, framed, sniffed or stored. */
export function securityHeaders({ publicUrl }: { publicUrl: string }): Middleware {
  const transportSecurity = strictTransportSecurity(publicUrl)
  return async function setSecurityHeaders(ctx, next) {
    ctx.set('X-Content-Type-Options', 'nosniff')
    ctx.set('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'")
    ctx.set('Cache-Control', 'no-store')
    ctx.set('Referrer-Policy', 'no-referrer')
    ctx.set('Cross-Origin-Resource-Policy', 'same-origin')
    ctx.set(transportSecurity)
    await next()
  }
}

/** Only if `PUBLIC_URL` is https: a host that serves plain HTTP must not make browsers require HTTPS for a year. */
export function strictTransportSecurity(publicUrl: string): Readonly<Record<string, string>> {
  return publicUrl.startsWith('https://') ? { 'Strict-Transport-Security': 'max-age=31536000' } : {}
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
