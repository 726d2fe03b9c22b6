import Koa from 'koa'
import type { Logger } from 'pino'
import type { Health } from './health.js'
import type { Metrics } from './metrics.js'
import { logStrayErrors } from '../middleware/handle-errors.js'

/** For operators and Prometheus, on a port of its own: `/metrics` and `/health`. */
export function makeAdminApp({ health, metrics, log }: { health: Health; metrics: Metrics; log: Logger }): Koa {
  const app = new Koa()
  app.on('error', logStrayErrors(log))
  app.use(async function answerOperator(ctx) {
    if (ctx.path === '/metrics') {
      ctx.type = metrics.registry.contentType
      ctx.body = await metrics.registry.metrics()
    } else if (ctx.path === '/health') {
      const details = await health.details()
      ctx.status = details.status === 'ok' ? 200 : 503
      ctx.body = details
    }
  })
  return app
}
