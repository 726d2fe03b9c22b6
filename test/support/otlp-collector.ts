import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { listen } from '../../src/adapters/http/server/server.js'

/** A span as OTLP sends it in JSON. */
export interface ExportedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  /** 2: server, 3: client. */
  readonly kind: number
  readonly name: string
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]
  /** 2: error. */
  readonly status: { readonly code: number }
}

/** Receives spans over OTLP/HTTP. */
export interface OtlpCollector {
  readonly url: string
  /** The bodies of all requests so far. */
  readonly bodies: readonly string[]
  readonly spans: readonly ExportedSpan[]
  close(): void
}

/** `isSilent`: accepts requests, but sends no response. */
export async function startOtlpCollector({ isSilent = false } = {}): Promise<OtlpCollector> {
  const bodies: string[] = []
  const spans: ExportedSpan[] = []
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request)
    bodies.push(body)
    const { resourceSpans } = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: ExportedSpan[] }[] }[] }
    spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans).flatMap((scope) => scope.spans))
    if (!isSilent) response.setHeader('Content-Type', 'application/json').end('{}')
  }
  const server = createServer((request, response) => void receive(request, response))
  return {
    url: await listen(server, '127.0.0.1', 0),
    bodies,
    spans,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

export function getAttributes({ attributes }: ExportedSpan): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}
