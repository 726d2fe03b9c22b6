import type { Registry } from 'prom-client'
import { addCallHistogram, addCounter, addGauge, addReadCounter } from './add-metric.js'

/** The metrics of the quotas in Redis and of the local decisions of this replica. Only in distributed mode. */
export class RedisMetrics {
  readonly #changes
  readonly #callSeconds
  readonly localGrants
  readonly restoredKeys
  /** Absent while the circuit breaker is closed. It is open until Redis responds for the first time. */
  #openSinceMs: number | undefined = performance.now()
  #openMsBefore = 0

  constructor(private readonly registry: Registry) {
    this.#changes = addCounter(registry, {
      name: 'petstore_redis_changes_total',
      help: 'State changes of the Redis circuit breaker. After a change to down, this replica grants its share of the quotas. After a change to up, all replicas share the quotas.',
      labelNames: ['to'],
    })
    // Otherwise, the metric would be missing until the first change.
    for (const to of ['up', 'down']) this.#changes.inc({ to }, 0)
    this.#callSeconds = addCallHistogram(registry, {
      name: 'petstore_redis_call_duration_seconds',
      help: 'Duration of calls of the quota script. One call decides all requests that arrive together.',
      labelNames: ['result'],
    })
    this.localGrants = addCounter(registry, {
      name: 'petstore_local_grants_total',
      help: 'Requests that this replica admitted without Redis',
    })
    this.restoredKeys = addCounter(registry, {
      name: 'petstore_restored_keys_total',
      help: 'API keys whose quotas this replica restored after Redis may have lost data',
    })
    const breakerOpen = { name: 'petstore_redis_breaker_open', help: 'Whether the circuit breaker is open: 1 while Redis is unavailable' }
    addGauge(registry, breakerOpen, () => (this.#openSinceMs === undefined ? 0 : 1))
    const openSeconds = { name: 'petstore_redis_breaker_open_seconds_total', help: 'Time for which the circuit breaker was open' }
    addReadCounter(registry, openSeconds, () => (this.#openMsBefore + this.#openMs) / 1000)
  }

  get #openMs(): number {
    return this.#openSinceMs === undefined ? 0 : performance.now() - this.#openSinceMs
  }

  countChange({ isUp }: { isUp: boolean }): void {
    this.#changes.inc({ to: isUp ? 'up' : 'down' })
    if (isUp) {
      this.#openMsBefore += this.#openMs
      this.#openSinceMs = undefined
    } else {
      this.#openSinceMs ??= performance.now()
    }
  }

  observeCall(elapsedMs: number, result: 'ok' | 'error'): void {
    this.#callSeconds.observe({ result }, elapsedMs / 1000)
  }

  /** `countReplicas`: returns the number of replicas by which quotas are divided while Redis is unavailable. */
  collectReplicas(countReplicas: () => number): void {
    const help = 'Number of replicas by which quotas are divided while Redis is unavailable'
    addGauge(this.registry, { name: 'petstore_replicas', help }, countReplicas)
  }

  /** `countKeys`: returns the number of API keys with usage that is not reported to Redis. */
  collectPendingUsage(countKeys: () => number): void {
    const help = 'API keys with usage that this replica granted without Redis and has not reported to it'
    addGauge(this.registry, { name: 'petstore_pending_usage_keys', help }, countKeys)
  }
}
