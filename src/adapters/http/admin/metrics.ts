import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import type { PlanName } from '../../../core/plan.js'
import type { Verdict } from '../../../core/quota.js'
import type { ErrorCode } from '../errors/error-catalogue.js'

interface MeasuredRequest {
  readonly method: string
  /** The template of the path, such as `/v1/pets/{petId}`. */
  readonly route: string
  readonly status: number
}

/** The metrics for Prometheus. No label has values that a client can choose freely. */
export class Metrics {
  readonly registry = new Registry()

  readonly #requestSeconds = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time to respond, by method, route template and status',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [this.registry],
  })
  readonly #verdicts = new Counter({
    name: 'petstore_quota_verdicts_total',
    help: 'Quota verdicts by plan. Requests with the verdict shadow were admitted, but would be rejected if limits were enforced.',
    labelNames: ['plan', 'verdict'],
    registers: [this.registry],
  })
  readonly #unauthenticated = new Counter({
    name: 'petstore_unauthenticated_requests_total',
    help: 'Requests rejected without a verified API key, by error code',
    labelNames: ['code'],
    registers: [this.registry],
  })
  readonly #deprecated = new Counter({
    name: 'petstore_deprecated_requests_total',
    help: 'Requests for deprecated operations',
    labelNames: ['operation'],
    registers: [this.registry],
  })

  readonly #clientsGone = new Counter({
    name: 'petstore_clients_gone_total',
    help: 'Connections closed by the client or a timeout before all responses were complete',
    registers: [this.registry],
  })
  readonly #droppedConnections = new Counter({
    name: 'petstore_dropped_connections_total',
    help: 'Connections closed on arrival because MAX_CONNECTIONS was reached',
    registers: [this.registry],
  })
  readonly #redisChanges = new Counter({
    name: 'petstore_redis_changes_total',
    help: 'Changes of the Redis circuit breaker. After down, this replica grants its share of the quotas. After up, all replicas share them.',
    labelNames: ['to'],
    registers: [this.registry],
  })

  /** Adds the metrics of the Node.js process: memory, event loop and garbage collection. */
  collectProcessMetrics(): void {
    collectDefaultMetrics({ register: this.registry })
  }

  countRequest({ method, route, status }: MeasuredRequest, elapsedMs: number): void {
    this.#requestSeconds.observe({ method, route, status }, elapsedMs / 1000)
  }

  countVerdict(plan: PlanName, verdict: Verdict): void {
    this.#verdicts.inc({ plan, verdict: 'shadowed' in verdict ? 'shadow' : verdict.kind })
  }

  countUnauthenticated(code: ErrorCode): void {
    this.#unauthenticated.inc({ code })
  }

  countClientGone(): void {
    this.#clientsGone.inc()
  }

  countDroppedConnection(): void {
    this.#droppedConnections.inc()
  }

  countRedisChange({ isUp }: { isUp: boolean }): void {
    this.#redisChanges.inc({ to: isUp ? 'up' : 'down' })
  }

  countDeprecatedRequest(operation: string): void {
    this.#deprecated.inc({ operation })
  }
}
