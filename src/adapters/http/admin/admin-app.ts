import Koa from 'koa'
import type { Logger } from 'pino'
import type { Health } from './health.js'
import type { Metrics } from './metrics.js'
import { makeErrorLogger } from '../middleware/handle-errors.js'

/** `/metrics` and `/health` for operators and Prometheus, on a port of their own. */
export function makeAdminApp({ health, metrics, log }: { health: Health; metrics: Metrics; log: Logger }): Koa {
  const app = new Koa()
  app.on('error', makeErrorLogger(log))
  app.use(async function respondToOperator(ctx) {
    if (ctx.path === '/metrics') {
      ctx.type = metrics.registry.contentType
      ctx.body = await metrics.registry.metrics()
    } else if (ctx.path === '/health') {
      const details = await health.check()
      ctx.status = details.status === 'ok' ? 200 : 503
      ctx.body = details
    }
  })
  return app
}
