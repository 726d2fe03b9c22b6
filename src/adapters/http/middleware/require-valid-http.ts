import type { Middleware, RequestContext } from '../pipeline/context.js'
import { HttpError } from '../errors/http-error.js'

/** `uri-host [":" port]` (RFC 9110, 7.2): an IP literal in brackets or a registered name, which may be empty. */
const HOST = /^(\[[0-9A-Fa-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(:\d*)?$/

/** Rejects requests that Node's parser accepts although they are not valid HTTP/1.1 or HTTP/1.0. */
export function requireValidHttp(): Middleware {
  return function requireVersionHostAndFraming(ctx, next) {
    const problem = findProblem(ctx)
    // Proxies and servers interpret such a request differently, and may disagree about where the next one begins (request smuggling).
    if (problem) throw new HttpError('bad_request', { message: problem, headers: { Connection: 'close' } })
    return next()
  }
}

function findProblem({ req }: RequestContext): string | undefined {
  const { httpVersion } = req
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'The HTTP version must be 1.1 or 1.0.'

  const hosts = req.headersDistinct['host'] ?? []
  const isMissing = hosts.length === 0 && httpVersion === '1.1'
  if (isMissing || hosts.length > 1) return 'Exactly one Host header is required.'
  if (hosts[0] !== undefined && !HOST.test(hosts[0])) return 'The Host header is not valid.'

  const coding = req.headers['transfer-encoding']
  if (coding !== undefined && httpVersion === '1.0') return 'Transfer-Encoding requires HTTP/1.1.'
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return 'The only supported Transfer-Encoding is chunked.'
  return undefined
}
