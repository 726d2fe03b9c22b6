import type { Middleware } from '../pipeline/context.js'
import { setHeaders } from '../pipeline/set-headers.js'

/** API responses are data: browsers must not run, frame, sniff or store them. */
export function setSecurityHeaders({ publicUrl }: { publicUrl: string }): Middleware {
  const headers = {
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Resource-Policy': 'same-origin',
    ...toStrictTransportSecurity(publicUrl),
  }
  return function addSecurityHeaders(ctx, next) {
    setHeaders(ctx, headers)
    return next()
  }
}

/** Empty unless `PUBLIC_URL` is https: a host that serves plain HTTP must not make browsers require HTTPS for a year. */
export function toStrictTransportSecurity(publicUrl: string): Readonly<Record<string, string>> {
  return publicUrl.startsWith('https://') ? { 'Strict-Transport-Security': 'max-age=31536000' } : {}
}
