import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
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
  readonly #verdicts = this.#makeCounter(
    'petstore_quota_verdicts_total',
    'Quota verdicts by plan. Requests with the verdict shadow were admitted, but would be rejected if limits were enforced.',
    ['plan', 'verdict'],
  )
  readonly #unauthenticated = this.#makeCounter(
    'petstore_unauthenticated_requests_total',
    'Requests rejected without a verified API key, by error code',
    ['code'],
  )
  readonly #deprecated = this.#makeCounter('petstore_deprecated_requests_total', 'Requests for deprecated operations', ['operation'])
  readonly #redisChanges = this.#makeCounter(
    'petstore_redis_changes_total',
    'State changes of the Redis circuit breaker. After a change to down, this replica grants its share of the quotas. After a change to up, all replicas share the quotas.',
    ['to'],
  )
  readonly #mongoChanges = this.#makeCounter(
    'petstore_mongodb_changes_total',
    'Changes of the state of MongoDB. While it is down, requests that need it get 503.',
    ['to'],
  )
  readonly clientsGone = this.#makeCounter(
    'petstore_clients_gone_total',
    'Connections closed by the client or a timeout before all responses were complete',
  )
  readonly droppedConnections = this.#makeCounter(
    'petstore_dropped_connections_total',
    'Connections closed on arrival because MAX_CONNECTIONS was reached',
  )

  constructor() {
    // Otherwise, the metrics would be missing until the first change.
    for (const to of ['up', 'down']) for (const changes of [this.#redisChanges, this.#mongoChanges]) changes.inc({ to }, 0)
  }

  #makeCounter<Label extends string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.registry] })
  }

  /** Adds the metrics of the Node.js process: memory, event loop and garbage collection. */
  collectProcessMetrics(): void {
    collectDefaultMetrics({ register: this.registry })
  }

  /** `countReplicas`: returns the number of replicas by which quotas are divided while Redis is unavailable. */
  collectReplicas(countReplicas: () => number): void {
    new Gauge({
      name: 'petstore_replicas',
      help: 'Number of replicas by which quotas are divided while Redis is unavailable',
      registers: [this.registry],
      collect() {
        this.set(countReplicas())
      },
    })
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

  countRedisChange({ isUp }: { isUp: boolean }): void {
    this.#redisChanges.inc({ to: isUp ? 'up' : 'down' })
  }

  countMongoChange({ isUp }: { isUp: boolean }): void {
    this.#mongoChanges.inc({ to: isUp ? 'up' : 'down' })
  }

  countDeprecatedRequest(operation: string): void {
    this.#deprecated.inc({ operation })
  }
}
