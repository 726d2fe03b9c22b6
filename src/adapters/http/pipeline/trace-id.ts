/**
 * `version-trace-parent-flags`, where neither ID is zero (https://www.w3.org/TR/trace-context/#traceparent-header). Only versions after 00 may
 * have further parts.
 */
const TRACEPARENT = /^(?!ff|00.{54})[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-.*)?$/

/** Reads the trace ID from a `traceparent` header. Returns `undefined` if the header is absent or not valid. */
export function parseTraceId(traceparent: string | readonly string[] | undefined): string | undefined {
  return typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent)?.[1] : undefined
}
