import { randomBytes } from 'node:crypto'
import { ContainerModule } from 'inversify'
import { makeAdminApp } from '../adapters/http/admin/admin-app.js'
import { Health } from '../adapters/http/admin/health.js'
import { Metrics } from '../adapters/http/admin/metrics.js'
import { makeApp } from '../adapters/http/app.js'
import { traceRequests } from '../adapters/http/middleware/trace-requests.js'
import { makeCursors } from '../adapters/http/operations/cursor.js'
import { makeOperations } from '../adapters/http/operations/operations.js'
import { CachedApiKeyVerifier } from '../adapters/memory/cached-api-key-verifier.js'
import { CachedUsageReader } from '../adapters/memory/cached-usage-reader.js'
import type { Config } from '../config.js'
import { makeAdmit } from '../core/use-cases/admit.js'
import { makeAuthenticate } from '../core/use-cases/authenticate.js'
import { makeShowOwnUsage } from '../core/use-cases/show-own-usage.js'
import { readVersion } from '../version.js'
import type { BackingService } from './tokens.js'
import { TOKENS } from './tokens.js'

/** The API and the admin server. */
export function httpModule(config: Config): ContainerModule {
  const { plans, publicUrl = '', cursorSecrets = [randomBytes(32).toString('hex')] } = config
  const demoSecrets: string[] = []
  const settings = { ...config, publicUrl, demoSecrets, version: readVersion() }
  return new ContainerModule(({ bind }) => {
    bind(TOKENS.metrics).toResolvedValue(() => new Metrics())
    bind(TOKENS.health).toResolvedValue(
      (dependencies: BackingService[] = []) => new Health(dependencies),
      [{ isMultiple: true, optional: true, serviceIdentifier: TOKENS.backingServices }],
    )
    bind(TOKENS.apiKeyVerifier).toResolvedValue(
      (secrets, apiKeyStore, failedAuthentications, clock) =>
        new CachedApiKeyVerifier({ secrets, apiKeyStore, failedAuthentications, clock }),
      [TOKENS.secrets, TOKENS.apiKeyStore, TOKENS.failedAuthentications, TOKENS.clock],
    )
    bind(TOKENS.authenticate).toResolvedValue(
      (apiKeyVerifier, failedAuthentications) => makeAuthenticate({ apiKeyVerifier, failedAuthentications }),
      [TOKENS.apiKeyVerifier, TOKENS.failedAuthentications],
    )
    bind(TOKENS.admit).toResolvedValue(
      (authenticate, apiKeyVerifier, quotas) => makeAdmit({ authenticate, apiKeyVerifier, quotas, plans }),
      [TOKENS.authenticate, TOKENS.apiKeyVerifier, TOKENS.quotas],
    )
    bind(TOKENS.showOwnUsage).toResolvedValue(
      (authenticate, apiKeyVerifier, reader, clock) =>
        makeShowOwnUsage({ authenticate, apiKeyVerifier, usageReader: new CachedUsageReader(reader, clock), plans }),
      [TOKENS.authenticate, TOKENS.apiKeyVerifier, TOKENS.usageReader, TOKENS.clock],
    )
    bind(TOKENS.operations).toResolvedValue(
      (pets, petIds, orders, idempotency) =>
        makeOperations({ pets, petIds, orders, idempotency, cursors: makeCursors(cursorSecrets), publicUrl }),
      [TOKENS.pets, TOKENS.petIds, TOKENS.orders, TOKENS.idempotency],
    )
    bind(TOKENS.demoSecrets).toConstantValue(demoSecrets)
    bind(TOKENS.api).toResolvedValue(
      (operations, admit, showOwnUsage, failedAuthentications, clock, health, metrics, log, tracing) => {
        const deps = { ...settings, operations, admit, showOwnUsage, failedAuthentications, clock, health, metrics, log }
        return makeApp({ ...deps, traceRequests: tracing && traceRequests(tracing) }).callback()
      },
      [
        TOKENS.operations,
        TOKENS.admit,
        TOKENS.showOwnUsage,
        TOKENS.failedAuthentications,
        TOKENS.clock,
        TOKENS.health,
        TOKENS.metrics,
        TOKENS.log,
        TOKENS.tracing,
      ],
    )
    bind(TOKENS.adminApi).toResolvedValue(
      (health, metrics, log) => makeAdminApp({ health, metrics, log }).callback(),
      [TOKENS.health, TOKENS.metrics, TOKENS.log],
    )
  })
}
