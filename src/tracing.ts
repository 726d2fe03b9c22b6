// Preloaded with `node --import`. If an OTLP endpoint is set, loads OpenTelemetry and makes the service trace its requests.
import { isTracingConfigured } from './config.js'

if (isTracingConfigured()) {
  const { enableTracing } = await import('./wiring/tracing.js')
  const { Tracing } = await import('./adapters/opentelemetry/tracing.js')
  enableTracing((log) => new Tracing(log))
}
