import type { ServerOptions } from 'node:http'

/** The limits that protect the service from hostile or broken clients. */

/** A pet takes less than 1 KiB. */
export const BODY_LIMIT_BYTES = 64 * 1024

/** Levels of arrays and objects in a body. A pet has one. */
export const JSON_DEPTH_LIMIT = 32

/** The longest that a body may take to arrive. Less than `requestTimeout`, so that the 408 has all headers. */
export const BODY_TIMEOUT_MS = 15_000

/** A connection without reads or writes for this long is closed, even if requests are in flight on it. */
export const SOCKET_TIMEOUT_MS = 30_000

/**
 * A connection with more unfinished responses is closed: each uses memory or a file descriptor, and no legitimate client pipelines that many.
 */
export const PIPELINE_LIMIT = 32

/** How long a connection stays open after the server has ended its side, so that the client can read the last response. */
export const LINGER_MS = 1_000

export const SERVER_OPTIONS: ServerOptions = {
  // Protects against slow clients: the time in which the headers, and the whole request, must arrive.
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  // Longer than the idle timeout of load balancers (usually 60 s). Otherwise, they would send requests on connections that are being closed.
  keepAliveTimeout: 75_000,
  maxHeaderSize: 8 * 1024,
  // Node's own response to a missing Host has no body. `requireValidHttp` responds instead.
  requireHostHeader: false,
  insecureHTTPParser: false,
}
