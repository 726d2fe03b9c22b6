import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import type { PlanName } from '../../../core/plan.js'
import type { Verdict } from '../../../core/quota.js'
import type { ErrorCode } from '../errors/error-catalogue.js'

interface MeasuredRequest {
  readonly method: string
  /** The template of the path, never the path. */
  readonly route: string
  readonly status: number
}

/** What Prometheus reads from the admin port. No label holds anything that a client chooses freely. */
export class Metrics {
  readonly registry = new Registry()

  readonly #requestSeconds = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time to answer, by method, route template and status',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [this.registry],
  })
  readonly #verdicts = new Counter({
    name: 'petstore_quota_verdicts_total',
    help: 'Quota verdicts by plan; shadow is a request let pass that enforcement would have refused',
    labelNames: ['plan', 'verdict'],
    registers: [this.registry],
  })
  readonly #unauthenticated = new Counter({
    name: 'petstore_unauthenticated_requests_total',
    help: 'Requests refused without a verified key, by error code',
    labelNames: ['code'],
    registers: [this.registry],
  })
  readonly #deprecated = new Counter({
    name: 'petstore_deprecated_requests_total',
    help: 'Requests of operations that are to be removed',
    labelNames: ['operation'],
    registers: [this.registry],
  })

  readonly #clientsGone = new Counter({
    name: 'petstore_clients_gone_total',
    help: 'Connections that the client or a timeout closed before all responses were complete',
    registers: [this.registry],
  })
  readonly #droppedConnections = new Counter({
    name: 'petstore_dropped_connections_total',
    help: 'Connections closed on arrival because MAX_CONNECTIONS was reached',
    registers: [this.registry],
  })
  readonly #redisChanges = new Counter({
    name: 'petstore_redis_changes_total',
    help: 'How often Redis went away (down), so that this replica gave out its part of the quotas, and came back (up)',
    labelNames: ['to'],
    registers: [this.registry],
  })

  /** Adds what Node tells of its process: memory, event loop, garbage collection. */
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
