import { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Attributes, Span, Tracer } from '@opentelemetry/api'
import { defaultTextMapGetter, diag, DiagLogLevel, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import type { Logger } from 'pino'

/** What `TracingChannel.tracePromise` publishes. */
interface TracedCall {
  readonly error?: unknown
}

/** Published by ioredis. It also has the arguments of the command, which contain key IDs and quotas. */
interface RedisCommand extends TracedCall {
  readonly command: string
  readonly serverAddress: string
  readonly serverPort: number | undefined
}

/** Published by `MongoConnection`. */
interface MongoCall extends TracedCall {
  /** A collection and what is done with it: `pets.find`. */
  readonly call: string
}

interface ServedRequest {
  readonly requestId: string
  readonly route?: string
  readonly status: number
  readonly errorCode?: string
}

/** How long a shutdown may wait for the export of the last spans. */
const CLOSE_TIMEOUT_MS = 1_000
const WARNING_INTERVAL_MS = 60_000

/**
 * Traces requests and their calls to MongoDB and Redis with OpenTelemetry, whose SDK reads the variables `OTEL_*`. There is one instance per
 * process, because channels and diagnostics are global. Spans contain no value that a client sent, except the request ID.
 */
export class Tracing {
  readonly #propagator = new W3CTraceContextPropagator()
  /** The span of the request that is being served. */
  readonly #requestSpan = new AsyncLocalStorage<Span>()
  readonly #provider: BasicTracerProvider
  readonly #tracer: Tracer
  #lastWarningMs = -Infinity

  constructor(private readonly log: Logger) {
    const warn = (problem: unknown) => this.#warn(problem)
    const ignore = () => undefined
    diag.setLogger({ error: warn, warn, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.WARN)
    setGlobalErrorHandler(warn)
    this.#provider = new BasicTracerProvider({
      resource: defaultResource()
        .merge(resourceFromAttributes({ 'service.name': 'petstore', 'host.name': hostname() }))
        .merge(detectResources({ detectors: [envDetector] })),
      spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
    })
    this.#tracer = this.#provider.getTracer('petstore')

    this.#traceCalls('petstore:mongodb', ({ call }: MongoCall) => {
      const [collection = '', operation = ''] = call.split('.')
      const attributes = { 'db.system.name': 'mongodb', 'db.collection.name': collection, 'db.operation.name': operation }
      return { name: `${operation} ${collection}`, attributes }
    })
    this.#traceCalls('ioredis:command', ({ command, serverAddress, serverPort }: RedisCommand) => {
      const name = command.toUpperCase()
      const server = { 'server.address': serverAddress, ...(serverPort && { 'server.port': serverPort }) }
      return { name, attributes: { 'db.system.name': 'redis', 'db.operation.name': name, ...server } }
    })
  }

  /** Runs `serve` in a span, whose parent is in the headers of the request. */
  async traceRequest(request: IncomingMessage, serve: (traceId: string) => Promise<ServedRequest>): Promise<void> {
    const { method = '', headers } = request
    const attributes = { 'http.request.method': method }
    // Without `tracestate`, which would be exported with every span.
    const parent = this.#propagator.extract(ROOT_CONTEXT, { traceparent: headers['traceparent'] }, defaultTextMapGetter)
    const span = this.#tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, parent)
    try {
      const { requestId, route, status, errorCode } = await this.#requestSpan.run(span, () => serve(span.spanContext().traceId))
      if (route) span.updateName(`${method} ${route}`).setAttribute('http.route', route)
      span.setAttributes({ 'http.response.status_code': status, 'petstore.request_id': requestId })
      if (status >= 500) markAsFailed(span, errorCode ?? `${status}`)
    } finally {
      span.end()
    }
  }

  /** Exports the last spans. Takes at most one second. */
  async close(): Promise<void> {
    const exported = this.#provider.shutdown().catch((error: unknown) => this.#warn(error))
    await Promise.race([exported, delay(CLOSE_TIMEOUT_MS, undefined, { ref: false })])
  }

  /** Creates a span for each call that is published on the channel while a request is served. */
  #traceCalls<Call extends TracedCall>(channel: string, describe: (call: Call) => { name: string; attributes: Attributes }): void {
    const spans = new WeakMap<object, Span>()
    const { start, asyncEnd } = tracingChannel<unknown, Call>(channel)
    start.subscribe((message) => {
      const requestSpan = this.#requestSpan.getStore()
      // Timers that a request has started, such as those of reconnects, run in its context after it has ended.
      if (!requestSpan?.isRecording()) return
      const { name, attributes } = describe(message as Call)
      spans.set(
        message as Call,
        this.#tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, trace.setSpan(ROOT_CONTEXT, requestSpan)),
      )
    })
    asyncEnd.subscribe((message) => {
      const span = spans.get(message as Call)
      const { error } = message as Call
      if (span && error !== undefined) markAsFailed(span, error instanceof Error ? error.constructor.name : 'Error')
      span?.end()
    })
  }

  /** At most once per minute: an unreachable collector causes an error every few seconds. */
  #warn(problem: unknown): void {
    const nowMs = performance.now()
    if (nowMs - this.#lastWarningMs < WARNING_INTERVAL_MS) return
    this.#lastWarningMs = nowMs
    this.log.warn({ reason: toReason(problem) }, 'OpenTelemetry reports a problem: traces may be incomplete')
  }
}

/** Records no message: it could contain values. */
function markAsFailed(span: Span, errorType: string): void {
  span.setAttribute('error.type', errorType).setStatus({ code: SpanStatusCode.ERROR })
}

/** The error of a host name with several IP addresses has no message. */
function toReason(problem: unknown): string {
  if (!(problem instanceof Error)) return String(problem)
  return problem.message || String((problem as NodeJS.ErrnoException).code)
}
