import 'reflect-metadata'
import type { RequestListener } from 'node:http'
import type { ServiceIdentifier } from 'inversify'
import { inject as untypedInject, multiInject, optional } from 'inversify'
import type { Logger } from 'pino'
import type { ApiKeyAdmin } from '../adapters/cli/api-key-admin.js'
import type { Dependency, Health } from '../adapters/http/admin/health.js'
import type { Metrics } from '../adapters/http/admin/metrics.js'
import type { Operation } from '../adapters/http/operations/operation.js'
import type { MongoConnection } from '../adapters/mongo/mongo-connection.js'
import type { Tracing } from '../adapters/opentelemetry/tracing.js'
import type { RedisConnection } from '../adapters/redis/redis-connection.js'
import type { Purpose } from '../config.js'
import type { ApiKeyHistory } from '../core/ports/api-key-history.js'
import type { ApiKeySecrets } from '../core/ports/api-key-secrets.js'
import type { ApiKeyStore } from '../core/ports/api-key-store.js'
import type { ApiKeyVerifier } from '../core/ports/api-key-verifier.js'
import type { Clock } from '../core/ports/clock.js'
import type { FailedAuthentications } from '../core/ports/failed-authentications.js'
import type { IdempotencyStore } from '../core/ports/idempotency-store.js'
import type { OrderStore } from '../core/ports/order-store.js'
import type { PetIds } from '../core/ports/pet-ids.js'
import type { PetStore } from '../core/ports/pet-store.js'
import type { QuotaControl } from '../core/ports/quota-control.js'
import type { QuotaStore } from '../core/ports/quota-store.js'
import type { UsageReader } from '../core/ports/usage-reader.js'
import type { Admit } from '../core/use-cases/admit.js'
import type { Authenticate } from '../core/use-cases/authenticate.js'
import type { Seed } from '../core/use-cases/seed.js'
import type { ShowOwnUsage } from '../core/use-cases/show-own-usage.js'

/** A server that the process uses, such as a database. */
export interface BackingService extends Dependency {
  /**
   * Connects and creates what is missing, such as indexes. With `serve`, this process also becomes a replica. Throws `StoreUnavailable`, or
   * `OperatorError` if an operator has to act.
   */
  prepare(purpose: Purpose): Promise<void>
  /** Reports what is not yet stored, if possible, and disconnects. */
  close(): Promise<void>
}

/** A token has the type of the value that is bound to it, so that injecting the wrong dependency is a compile error. */
function token<Service>(name: string): ServiceIdentifier<Service> {
  return Symbol(name)
}

export const TOKENS = {
  // Bound by node.ts.
  clock: token<Clock>('clock'),
  log: token<Logger>('log'),
  secrets: token<ApiKeySecrets>('secrets'),

  /** Bound by tracing.ts. `undefined` unless tracing is enabled. */
  tracing: token<Tracing | undefined>('tracing'),

  // Bound by memory.ts, or by mongo.ts and redis.ts.
  pets: token<PetStore>('pets'),
  petIds: token<PetIds>('petIds'),
  orders: token<OrderStore>('orders'),
  idempotency: token<IdempotencyStore>('idempotency'),
  apiKeyStore: token<ApiKeyStore>('apiKeyStore'),
  apiKeyHistory: token<ApiKeyHistory>('apiKeyHistory'),
  quotas: token<QuotaStore>('quotas'),
  quotaControl: token<QuotaControl>('quotaControl'),
  usageReader: token<UsageReader>('usageReader'),
  failedAuthentications: token<FailedAuthentications>('failedAuthentications'),
  /** Bound once per backing service. Not bound in embedded mode, which has none. */
  backingServices: token<BackingService>('backingServices'),
  mongo: token<MongoConnection>('mongo'),
  /** For bulk operations, whose responses may take up to a minute. */
  bulkMongo: token<MongoConnection>('bulkMongo'),
  /** For health checks, which must not wait for requests. */
  healthMongo: token<MongoConnection>('healthMongo'),
  redis: token<RedisConnection>('redis'),

  // Bound by http.ts.
  health: token<Health>('health'),
  metrics: token<Metrics>('metrics'),
  apiKeyVerifier: token<ApiKeyVerifier>('apiKeyVerifier'),
  authenticate: token<Authenticate>('authenticate'),
  admit: token<Admit>('admit'),
  showOwnUsage: token<ShowOwnUsage>('showOwnUsage'),
  /** Empty until the service issues demo keys, which it does only in embedded mode. */
  demoSecrets: token<string[]>('demoSecrets'),
  operations: token<readonly Operation[]>('operations'),
  api: token<RequestListener>('api'),
  adminApi: token<RequestListener>('adminApi'),

  // Bound by api-keys.ts and mongo.ts: what `petstore keys` and `petstore seed` need.
  apiKeyAdmin: token<ApiKeyAdmin>('apiKeyAdmin'),
  /** Only in distributed mode. */
  seed: token<Seed>('seed'),
} as const

/** Like Inversify's `inject`, but requires that the property has the type of the token. */
export function inject<Service>(identifier: ServiceIdentifier<Service>) {
  return <Key extends string>(target: { readonly [Name in Key]: Service }, property: Key): void =>
    untypedInject(identifier)(target, property)
}

/** Injects everything that is bound to the token, which may be nothing. */
export function injectAll<Service>(identifier: ServiceIdentifier<Service>) {
  return <Key extends string>(target: { readonly [Name in Key]: readonly Service[] }, property: Key): void => {
    multiInject(identifier)(target, property)
    optional()(target, property)
  }
}
