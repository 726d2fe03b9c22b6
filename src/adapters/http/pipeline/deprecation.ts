import type { Deprecation } from '../operations/operation.js'
import { API_PREFIX } from '../operations/operation.js'

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and a link to the successor. */
export function toDeprecationHeaders({ since, sunset, successor }: Deprecation, publicUrl: string): Readonly<Record<string, string>> {
  return {
    Deprecation: `@${Date.parse(since) / 1000}`,
    Sunset: new Date(sunset).toUTCString(),
    Link: `<${publicUrl}${API_PREFIX}${successor}>; rel="successor-version"`,
  }
}
