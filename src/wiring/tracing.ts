import { ContainerModule } from 'inversify'
import type { Logger } from 'pino'
import type { Tracing } from '../adapters/opentelemetry/tracing.js'
import { TOKENS } from './tokens.js'

type MakeTracing = (log: Logger) => Tracing

let makeTracing: MakeTracing | undefined

/** Called by `tracing.ts`, which loads OpenTelemetry. Nothing else loads it. */
export function enableTracing(make: MakeTracing): void {
  makeTracing = make
}

/** Spans of requests, if tracing is enabled. */
export function tracingModule(): ContainerModule {
  return new ContainerModule(({ bind }) => {
    bind(TOKENS.tracing).toResolvedValue((log) => makeTracing?.(log), [TOKENS.log])
  })
}
