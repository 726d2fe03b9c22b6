import type { Registry } from 'prom-client'
import { addCallHistogram, addCounter, addGauge } from './add-metric.js'

/** The reasons that the driver has. */
const POOL_FAILURES = ['timeout', 'connectionError', 'poolClosed']

/** The metrics of MongoDB as requests use it. Only in distributed mode. */
export class MongoMetrics {
  readonly #changes
  readonly #callSeconds
  readonly #poolWaitSeconds
  readonly #poolFailures
  #isUp = true

  constructor(registry: Registry) {
    this.#changes = addCounter(registry, {
      name: 'petstore_mongodb_changes_total',
      help: 'Changes of the state of MongoDB. While it is down, requests that need it get 503.',
      labelNames: ['to'],
    })
    // Otherwise, a counter would be missing until its first increase, which Prometheus would not see.
    for (const to of ['up', 'down']) this.#changes.inc({ to }, 0)
    addGauge(registry, { name: 'petstore_mongodb_up', help: 'Whether MongoDB is available, as requests noticed it' }, () =>
      this.#isUp ? 1 : 0,
    )
    this.#callSeconds = addCallHistogram(registry, {
      name: 'petstore_mongodb_call_duration_seconds',
      help: 'Duration of calls of MongoDB, by collection and operation',
      labelNames: ['call', 'result'],
    })
    this.#poolWaitSeconds = addCallHistogram(registry, {
      name: 'petstore_mongodb_pool_wait_seconds',
      help: 'Time that operations waited for a connection from the pool, in whole milliseconds',
    })
    this.#poolFailures = addCounter(registry, {
      name: 'petstore_mongodb_pool_failures_total',
      help: 'Operations that got no connection from the pool, by reason',
      labelNames: ['reason'],
    })
    for (const reason of POOL_FAILURES) this.#poolFailures.inc({ reason }, 0)
  }

  countChange({ isUp }: { isUp: boolean }): void {
    this.#isUp = isUp
    this.#changes.inc({ to: isUp ? 'up' : 'down' })
  }

  observeCall(call: string, elapsedMs: number, result: 'ok' | 'error'): void {
    this.#callSeconds.observe({ call, result }, elapsedMs / 1000)
  }

  observePoolWait(waitMs: number): void {
    this.#poolWaitSeconds.observe(waitMs / 1000)
  }

  countPoolFailure(reason: string): void {
    this.#poolFailures.inc({ reason })
  }
}
