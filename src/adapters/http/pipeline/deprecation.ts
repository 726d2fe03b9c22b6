import type { Deprecation } from '../operations/operation.js'
import { API_PREFIX } from '../operations/operation.js'

/** The headers of RFC 9745 and RFC 8594. */
export function toDeprecationHeaders({ since, sunset, successor }: Deprecation, publicUrl: string): Readonly<Record<string, string>> {
  return {
    Deprecation: `@${Date.parse(since) / 1000}`,
    Sunset: new Date(sunset).toUTCString(),
    Link: `<${publicUrl}${API_PREFIX}${successor}>; rel="successor-version"`,
  }
}

export function isRemoved({ sunset }: Deprecation, nowMs: number): boolean {
  return nowMs >= Date.parse(sunset)
}
