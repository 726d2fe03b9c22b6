import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { PlanName } from '../../../core/plan.js'
import type { Verdict } from '../../../core/quota.js'
import type { ErrorCode } from '../errors/error-catalogue.js'
import { addCounter, addGauge, addReadCounter } from './add-metric.js'

interface MeasuredRequest {
  readonly method: string
  /** The template of the path, such as `/v1/pets/{petId}`. */
  readonly route: string
  readonly status: number
}

/** What is read when the metrics are collected. */
export interface ProcessState {
  /** The version of the service. */
  readonly version: string
  readonly isReady: () => boolean
  /** Of the API port. */
  readonly countConnections: () => Promise<number>
  readonly countDiscardedLogLines: () => number
}

/**
 * The metrics of requests, quotas and the process for Prometheus. Those of MongoDB and Redis are added to the registry in distributed mode. No
 * label has values that a client can choose freely.
 */
export class Metrics {
  readonly registry = new Registry()

  readonly #requestSeconds = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time to respond, by method, route template and status',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [this.registry],
  })
  readonly #verdicts = addCounter(this.registry, {
    name: 'petstore_quota_verdicts_total',
    help: 'Quota verdicts by plan, and rejections also by the window that has to end before the next request is admitted. Requests with the verdict shadow were admitted, but would be rejected if limits were enforced.',
    labelNames: ['plan', 'verdict', 'window'],
  })
  readonly bans = addCounter(this.registry, { name: 'petstore_bans_total', help: 'Bans that requests to this replica started' })
  readonly #unauthenticated = addCounter(this.registry, {
    name: 'petstore_unauthenticated_requests_total',
    help: 'Requests rejected without a verified API key, by error code',
    labelNames: ['code'],
  })
  readonly oldSecretRequests = addCounter(this.registry, {
    name: 'petstore_old_secret_requests_total',
    help: 'Requests with the old secret of a rotated API key',
  })
  readonly #deprecated = addCounter(this.registry, {
    name: 'petstore_deprecated_requests_total',
    help: 'Requests for deprecated operations',
    labelNames: ['operation'],
  })
  readonly #unreadable = addCounter(this.registry, {
    name: 'petstore_unreadable_requests_total',
    help: 'Messages that could not be read as an HTTP request, by error code',
    labelNames: ['code'],
  })
  readonly clientsGone = addCounter(this.registry, {
    name: 'petstore_clients_gone_total',
    help: 'Connections closed by the client or a timeout before all responses were complete',
  })
  readonly droppedConnections = addCounter(this.registry, {
    name: 'petstore_dropped_connections_total',
    help: 'Connections closed on arrival because MAX_CONNECTIONS was reached',
  })
  readonly overloadRejections = addCounter(this.registry, {
    name: 'petstore_overload_rejections_total',
    help: 'Requests rejected with 503 because MAX_IN_FLIGHT was reached',
  })

  /** `countInFlight`: returns the number of API requests in flight. */
  collectInFlight(countInFlight: () => number): void {
    addGauge(this.registry, { name: 'petstore_requests_in_flight', help: 'API requests in flight' }, countInFlight)
  }

  /** Adds the metrics of the process: its version, its connections, its log, and what Node.js reports. */
  collectProcess({ version, isReady, countConnections, countDiscardedLogLines }: ProcessState): void {
    const { registry } = this
    collectDefaultMetrics({ register: registry })
    const buildInfo = new Gauge({
      name: 'petstore_build_info',
      help: 'Always 1. The labels are the versions of the service and of Node.js.',
      labelNames: ['version', 'node_version'],
      registers: [registry],
    })
    buildInfo.set({ version, node_version: process.version }, 1)
    addGauge(registry, { name: 'petstore_ready', help: 'Whether /readyz returns 200' }, () => (isReady() ? 1 : 0))
    addGauge(registry, { name: 'petstore_open_connections', help: 'Open connections to the API port' }, countConnections)
    const discarded = { name: 'petstore_discarded_log_lines_total', help: 'Log lines that could not be written' }
    addReadCounter(registry, discarded, countDiscardedLogLines)
  }

  countRequest({ method, route, status }: MeasuredRequest, elapsedMs: number): void {
    this.#requestSeconds.observe({ method, route, status }, elapsedMs / 1000)
  }

  countVerdict(plan: PlanName, verdict: Verdict): void {
    if (verdict.kind === 'admitted') {
      this.#verdicts.inc({ plan, verdict: 'shadowed' in verdict ? 'shadow' : 'admitted' })
      return
    }
    const { kind, window } = verdict
    this.#verdicts.inc({ plan, verdict: kind, ...(window ? { window } : {}) })
  }

  countUnauthenticated(code: ErrorCode): void {
    this.#unauthenticated.inc({ code })
  }

  countUnreadable(code: ErrorCode): void {
    this.#unreadable.inc({ code })
  }

  countDeprecatedRequest(operation: string): void {
    this.#deprecated.inc({ operation })
  }
}
