import type { RequestListener } from 'node:http'
import { injectable } from 'inversify'
import type { Logger } from 'pino'
import type { ApiKeyAdmin } from '../adapters/cli/api-key-admin.js'
import type { Health } from '../adapters/http/admin/health.js'
import type { Metrics } from '../adapters/http/admin/metrics.js'
import type { Tracing } from '../adapters/opentelemetry/tracing.js'
import type { Seed } from '../core/use-cases/seed.js'
import type { BackingService } from './tokens.js'
import { inject, injectAll, TOKENS } from './tokens.js'

/** What `petstore serve` needs. */
@injectable()
export class ServiceParts {
  @inject(TOKENS.log) readonly log!: Logger
  @inject(TOKENS.health) readonly health!: Health
  @inject(TOKENS.tracing) readonly tracing!: Tracing | undefined
  @inject(TOKENS.metrics) readonly metrics!: Metrics
  @inject(TOKENS.api) readonly api!: RequestListener
  @inject(TOKENS.adminApi) readonly adminApi!: RequestListener
  @inject(TOKENS.apiKeyAdmin) readonly apiKeyAdmin!: ApiKeyAdmin
  /** The docs page offers the first of them. */
  @inject(TOKENS.demoSecrets) readonly demoSecrets!: string[]
  @injectAll(TOKENS.backingServices) readonly backingServices!: readonly BackingService[]
}

/** What `petstore keys` and `petstore seed` need. Exists only in distributed mode. */
@injectable()
export class CommandParts {
  @inject(TOKENS.apiKeyAdmin) readonly apiKeyAdmin!: ApiKeyAdmin
  @inject(TOKENS.seed) readonly seed!: Seed
  @injectAll(TOKENS.backingServices) readonly backingServices!: readonly BackingService[]
}
