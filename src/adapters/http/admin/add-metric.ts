import type { Registry } from 'prom-client'
import { Counter, Gauge, Histogram } from 'prom-client'

interface Description<Label extends string> {
  readonly name: string
  readonly help: string
  readonly labelNames?: readonly Label[]
}

/** From 0.25 ms to the longest that a call of MongoDB may take. */
const CALL_BUCKETS_SECONDS = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5]

export function addCounter<Label extends string = never>(registry: Registry, description: Description<Label>): Counter<Label> {
  return new Counter({ ...description, registers: [registry] })
}

/** A counter that something else counts. `read` is called when the metrics are collected. */
export function addReadCounter(registry: Registry, description: Description<never>, read: () => number): void {
  const counter: Counter = new Counter({
    ...description,
    registers: [registry],
    collect() {
      counter.reset()
      counter.inc(read())
    },
  })
}

/** `read` is called when the metrics are collected. */
export function addGauge(registry: Registry, description: Description<never>, read: () => number | Promise<number>): void {
  const gauge: Gauge = new Gauge({
    ...description,
    registers: [registry],
    async collect() {
      gauge.set(await read())
    },
  })
}

/** Durations of calls of a database, in seconds. */
export function addCallHistogram<Label extends string = never>(registry: Registry, description: Description<Label>): Histogram<Label> {
  return new Histogram({ ...description, buckets: CALL_BUCKETS_SECONDS, registers: [registry] })
}
