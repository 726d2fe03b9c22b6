import 'reflect-metadata'
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { Container } from 'inversify'
import type { DestinationStream, Logger } from 'pino'
import { pino } from 'pino'
import { makeAdminApp } from './adapters/http/admin/admin-app.js'
import { makeApp } from './adapters/http/app.js'
import { makeCursors } from './adapters/http/operations/cursor.js'
import { Health } from './adapters/http/admin/health.js'
import { Metrics } from './adapters/http/admin/metrics.js'
import type { Operation } from './adapters/http/operations/operation.js'
import { makeCreatePetOperation } from './adapters/http/operations/create-pet.js'
import { makeGetPetOperation } from './adapters/http/operations/get-pet.js'
import { makeListOrdersOperation } from './adapters/http/operations/list-orders.js'
import { makeListPetsOperation } from './adapters/http/operations/list-pets.js'
import { CachedApiKeyLookup } from './adapters/memory/cached-api-key-lookup.js'
import { MemoryApiKeyStore } from './adapters/memory/memory-api-key-store.js'
import { MemoryFailedAuthentications } from './adapters/memory/memory-failed-authentications.js'
import { MemoryIdempotencyStore } from './adapters/memory/memory-idempotency-store.js'
import { MemoryOrderStore } from './adapters/memory/memory-order-store.js'
import { MemoryPetIds } from './adapters/memory/memory-pet-ids.js'
import { MemoryPetStore } from './adapters/memory/memory-pet-store.js'
import { MemoryQuotaStore } from './adapters/memory/memory-quota-store.js'
import { SAMPLE_ORDERS, SAMPLE_PETS } from './adapters/memory/sample-data.js'
import { MongoApiKeyStore } from './adapters/mongo/mongo-api-key-store.js'
import { MongoConnection } from './adapters/mongo/mongo-connection.js'
import { ensureIndexes } from './adapters/mongo/mongo-indexes.js'
import { MongoIdempotencyStore } from './adapters/mongo/mongo-idempotency-store.js'
import { MongoOrderStore } from './adapters/mongo/mongo-order-store.js'
import { MongoPetIds } from './adapters/mongo/mongo-pet-ids.js'
import { MongoPetStore } from './adapters/mongo/mongo-pet-store.js'
import { BULK_TIMEOUT_MS, MongoSeedStore } from './adapters/mongo/mongo-seed-store.js'
import { RedisConnection } from './adapters/redis/redis-connection.js'
import { RedisFailedAuthentications } from './adapters/redis/redis-failed-authentications.js'
import { RedisQuotaControl } from './adapters/redis/redis-quota-control.js'
import type { MakeLocalQuotas } from './adapters/redis/redis-quota-store.js'
import { RedisQuotaStore } from './adapters/redis/redis-quota-store.js'
import { CryptoApiKeySecrets } from './adapters/node/crypto-api-key-secrets.js'
import { SystemClock } from './adapters/node/system-clock.js'
import type { Config, SharedStorage } from './config.js'
import type { ApiKeyLookup } from './core/ports/api-key-lookup.js'
import type { ApiKeySecrets } from './core/ports/api-key-secrets.js'
import type { ApiKeyStore } from './core/ports/api-key-store.js'
import type { Clock } from './core/ports/clock.js'
import type { FailedAuthentications } from './core/ports/failed-authentications.js'
import type { IdempotencyStore } from './core/ports/idempotency-store.js'
import type { OrderStore } from './core/ports/order-store.js'
import type { PetIds } from './core/ports/pet-ids.js'
import type { PetStore } from './core/ports/pet-store.js'
import type { QuotaControl } from './core/ports/quota-control.js'
import type { QuotaStore } from './core/ports/quota-store.js'
import { makeAdmit } from './core/use-cases/admit.js'
import { makeAuthenticate } from './core/use-cases/authenticate.js'
import type { ChangeApiKeyPlan } from './core/use-cases/change-api-key-plan.js'
import { makeChangeApiKeyPlan } from './core/use-cases/change-api-key-plan.js'
import { makeCreatePet } from './core/use-cases/create-pet.js'
import { makeEnsureGetPetOffered, makeGetPet } from './core/use-cases/get-pet.js'
import type { IssueApiKey } from './core/use-cases/issue-api-key.js'
import { makeIssueApiKey } from './core/use-cases/issue-api-key.js'
import type { ListApiKeys } from './core/use-cases/list-api-keys.js'
import { makeListApiKeys } from './core/use-cases/list-api-keys.js'
import { makeListOrders } from './core/use-cases/list-orders.js'
import { makeListPets } from './core/use-cases/list-pets.js'
import type { RevokeApiKey } from './core/use-cases/revoke-api-key.js'
import { makeRevokeApiKey } from './core/use-cases/revoke-api-key.js'
import type { Seed } from './core/use-cases/seed.js'
import { makeSeed } from './core/use-cases/seed.js'
import type { ShowApiKey } from './core/use-cases/show-api-key.js'
import { makeShowApiKey } from './core/use-cases/show-api-key.js'
import type { ShowUsage } from './core/use-cases/show-usage.js'
import { makeShowUsage } from './core/use-cases/show-usage.js'
import type { UnbanApiKey } from './core/use-cases/unban-api-key.js'
import { makeUnbanApiKey } from './core/use-cases/unban-api-key.js'

export type { Container }

/** What the stores stand on. */
export interface Storage {
  /** Makes what is missing, such as indexes. Throws `StoreUnavailable`, and `OperatorError` that names what was refused and why. */
  prepare(): Promise<void>
  close(): Promise<void>
}

/** What can be had from the container, and put in another's place by a test. */
export const TOKENS = {
  config: Symbol('config'),
  clock: Symbol('clock'),
  log: Symbol('log'),
  secrets: Symbol('secrets'),
  mongo: Symbol('mongo'),
  bulkMongo: Symbol('bulkMongo'),
  storage: Symbol('storage'),
  pets: Symbol('pets'),
  petIds: Symbol('petIds'),
  orders: Symbol('orders'),
  idempotency: Symbol('idempotency'),
  apiKeyStore: Symbol('apiKeyStore'),
  apiKeys: Symbol('apiKeys'),
  redis: Symbol('redis'),
  quotas: Symbol('quotas'),
  quotaControl: Symbol('quotaControl'),
  failedAuthentications: Symbol('failedAuthentications'),
  health: Symbol('health'),
  metrics: Symbol('metrics'),
  issueApiKey: Symbol('issueApiKey'),
  listApiKeys: Symbol('listApiKeys'),
  showApiKey: Symbol('showApiKey'),
  changeApiKeyPlan: Symbol('changeApiKeyPlan'),
  revokeApiKey: Symbol('revokeApiKey'),
  showUsage: Symbol('showUsage'),
  unbanApiKey: Symbol('unbanApiKey'),
  seed: Symbol('seed'),
  operations: Symbol('operations'),
  api: Symbol('api'),
  admin: Symbol('admin'),
} as const

/** The only wiring. Everything is one per process, and made when it is first asked for. */
export function makeContainer(config: Config, logTo: DestinationStream = process.stdout): Container {
  const container = new Container({ defaultScope: 'Singleton' })
  container.bind<Config>(TOKENS.config).toConstantValue(config)
  container.bind<Logger>(TOKENS.log).toResolvedValue(() => makeLog(config, logTo))
  container.bind<Clock>(TOKENS.clock).to(SystemClock)
  container.bind<ApiKeySecrets>(TOKENS.secrets).to(CryptoApiKeySecrets)
  container.bind<Metrics>(TOKENS.metrics).toResolvedValue(() => new Metrics())
  if (config.distributed) bindSharedStorage(container, config, config.distributed)
  else bindEmbeddedStorage(container, config)
  bindApiKeys(container, config)
  bindApi(container, config)
  return container
}

/** Everything in this process: nothing else has to be installed, and nothing outlives it. */
function bindEmbeddedStorage(container: Container, config: Config): void {
  bindMemoryStores(container, config)
  bindMemoryQuotas(container, config)
  container.bind<Storage>(TOKENS.storage).toConstantValue({ prepare: async () => {}, close: async () => {} })
  container.bind<Health>(TOKENS.health).toResolvedValue(() => new Health([]))
}

/** What any number of replicas share. */
function bindSharedStorage(container: Container, config: Config, { mongodbUrl, redisUrl }: SharedStorage): void {
  bindMongoStores(container, config, mongodbUrl)
  bindRedisQuotas(container, config, redisUrl)
  const { mongo, bulkMongo, redis } = TOKENS
  container.bind<Storage>(TOKENS.storage).toResolvedValue(
    (requests: MongoConnection, bulk: MongoConnection, quotas: RedisConnection) => ({
      async prepare() {
        await Promise.all([ensureIndexes(mongodbUrl), quotas.connect()])
        await requests.open()
      },
      async close() {
        await quotas.close()
        await Promise.all([requests.close(), bulk.close()])
      },
    }),
    [mongo, bulkMongo, redis],
  )
  container.bind<Health>(TOKENS.health).toResolvedValue(
    (requests: MongoConnection, { breaker }: RedisConnection) =>
      new Health([
        { name: 'mongodb', required: true, isUp: () => requests.isUp() },
        // Without it every replica gives out its part of the quotas.
        { name: 'redis', required: false, isUp: async () => breaker.isUp },
      ]),
    [mongo, redis],
  )
}

function bindMemoryStores(container: Container, config: Config): void {
  const pets = config.sampleData ? SAMPLE_PETS : []
  const orders = config.sampleData ? SAMPLE_ORDERS : []
  container.bind<PetStore>(TOKENS.pets).toResolvedValue(() => new MemoryPetStore(pets))
  container.bind<PetIds>(TOKENS.petIds).toResolvedValue(() => new MemoryPetIds(pets.at(-1)?.id))
  container.bind<OrderStore>(TOKENS.orders).toResolvedValue(() => new MemoryOrderStore(orders))
  container.bind<ApiKeyStore>(TOKENS.apiKeyStore).toResolvedValue((clock: Clock) => new MemoryApiKeyStore(clock), [TOKENS.clock])
  container.bind<IdempotencyStore>(TOKENS.idempotency).toResolvedValue((clock: Clock) => new MemoryIdempotencyStore(clock), [TOKENS.clock])
}

/** One connection pool for requests, and one whose answers may take a minute. */
function bindMongoStores(container: Container, { idBlockSize }: Config, url: string): void {
  const { mongo, clock } = TOKENS
  container.bind<MongoConnection>(mongo).toResolvedValue(() => new MongoConnection(url))
  container.bind<MongoConnection>(TOKENS.bulkMongo).toResolvedValue(() => new MongoConnection(url, { responseTimeoutMs: BULK_TIMEOUT_MS }))
  container
    .bind<Seed>(TOKENS.seed)
    .toResolvedValue(
      ({ db }: MongoConnection, pets: PetStore) => makeSeed({ seedStore: new MongoSeedStore(db), pets }),
      [TOKENS.bulkMongo, TOKENS.pets],
    )
  container.bind<PetStore>(TOKENS.pets).toResolvedValue(({ db }: MongoConnection) => new MongoPetStore(db), [mongo])
  container.bind<PetIds>(TOKENS.petIds).toResolvedValue(({ db }: MongoConnection) => new MongoPetIds(db, idBlockSize), [mongo])
  container.bind<OrderStore>(TOKENS.orders).toResolvedValue(({ db }: MongoConnection) => new MongoOrderStore(db), [mongo])
  container
    .bind<ApiKeyStore>(TOKENS.apiKeyStore)
    .toResolvedValue(({ db }: MongoConnection, now: Clock) => new MongoApiKeyStore(db, now), [mongo, clock])
  container
    .bind<IdempotencyStore>(TOKENS.idempotency)
    .toResolvedValue(({ db }: MongoConnection, now: Clock) => new MongoIdempotencyStore(db, now), [mongo, clock])
}

function bindMemoryQuotas(container: Container, config: Config): void {
  container.bind<MemoryQuotaStore>(TOKENS.quotas).toResolvedValue((clock: Clock) => new MemoryQuotaStore(clock), [TOKENS.clock])
  container.bind<QuotaControl>(TOKENS.quotaControl).toService(TOKENS.quotas)
  container
    .bind<FailedAuthentications>(TOKENS.failedAuthentications)
    .toResolvedValue((clock: Clock) => new MemoryFailedAuthentications(config.plans.failedAuthenticationsPerMinute, clock), [TOKENS.clock])
}

/** Quotas of all replicas together, decided by Redis, and while it is away by each replica for its part. */
function bindRedisQuotas(container: Container, { plans, expectedReplicas }: Config, url: string): void {
  const { redis, clock } = TOKENS
  container.bind<RedisConnection>(redis).toResolvedValue(
    (log: Logger, metrics: Metrics) => {
      const connection = new RedisConnection(url)
      connection.breaker.onChange((isUp, reason) => {
        metrics.countRedisChange({ isUp })
        if (isUp) log.info('Redis answers: quotas are decided by all replicas together')
        else log.warn({ reason }, 'Redis is away: this replica gives out its part of the quotas')
      })
      return connection
    },
    [TOKENS.log, TOKENS.metrics],
  )
  container.bind<QuotaStore>(TOKENS.quotas).toResolvedValue(
    (connection: RedisConnection, now: Clock) => {
      const makeLocalQuotas: MakeLocalQuotas = (sharedClock, known) =>
        new MemoryQuotaStore(sharedClock, { replicas: expectedReplicas, known })
      return new RedisQuotaStore({ redis: connection, clock: now, makeLocalQuotas })
    },
    [redis, clock],
  )
  container
    .bind<QuotaControl>(TOKENS.quotaControl)
    .toResolvedValue((connection: RedisConnection) => new RedisQuotaControl(connection), [redis])
  container
    .bind<FailedAuthentications>(TOKENS.failedAuthentications)
    .toResolvedValue(
      (connection: RedisConnection, now: Clock) => new RedisFailedAuthentications(connection, plans.failedAuthenticationsPerMinute, now),
      [redis, clock],
    )
}

/** What the command line does with API keys. */
function bindApiKeys(container: Container, { plans }: Config): void {
  const { apiKeyStore: store, clock: now } = TOKENS
  container
    .bind<IssueApiKey>(TOKENS.issueApiKey)
    .toResolvedValue(
      (apiKeyStore: ApiKeyStore, secrets: ApiKeySecrets, clock: Clock) => makeIssueApiKey({ apiKeyStore, secrets, clock, plans }),
      [store, TOKENS.secrets, now],
    )
  container
    .bind<ListApiKeys>(TOKENS.listApiKeys)
    .toResolvedValue((apiKeyStore: ApiKeyStore, clock: Clock) => makeListApiKeys({ apiKeyStore, clock }), [store, now])
  container.bind<ShowApiKey>(TOKENS.showApiKey).toResolvedValue((apiKeyStore: ApiKeyStore) => makeShowApiKey({ apiKeyStore }), [store])
  const { quotaControl: control } = TOKENS
  container
    .bind<ChangeApiKeyPlan>(TOKENS.changeApiKeyPlan)
    .toResolvedValue(
      (apiKeyStore: ApiKeyStore, quotaControl: QuotaControl) => makeChangeApiKeyPlan({ apiKeyStore, quotaControl, plans }),
      [store, control],
    )
  container
    .bind<RevokeApiKey>(TOKENS.revokeApiKey)
    .toResolvedValue(
      (apiKeyStore: ApiKeyStore, quotaControl: QuotaControl, clock: Clock) => makeRevokeApiKey({ apiKeyStore, quotaControl, clock }),
      [store, control, now],
    )
  container
    .bind<ShowUsage>(TOKENS.showUsage)
    .toResolvedValue(
      (showApiKey: ShowApiKey, quotaControl: QuotaControl) => makeShowUsage({ showApiKey, quotaControl, plans }),
      [TOKENS.showApiKey, control],
    )
  container
    .bind<UnbanApiKey>(TOKENS.unbanApiKey)
    .toResolvedValue(
      (showApiKey: ShowApiKey, quotaControl: QuotaControl) => makeUnbanApiKey({ showApiKey, quotaControl }),
      [TOKENS.showApiKey, control],
    )
}

function bindApi(container: Container, config: Config): void {
  const publicUrl = config.publicUrl ?? ''
  const { plans, trustedProxyHops, maxInFlight, docs } = config

  container
    .bind<ApiKeyLookup>(TOKENS.apiKeys)
    .toResolvedValue((store: ApiKeyStore, clock: Clock) => new CachedApiKeyLookup(store, clock), [TOKENS.apiKeyStore, TOKENS.clock])
  container.bind<readonly Operation[]>(TOKENS.operations).toResolvedValue(
    (pets: PetStore, petIds: PetIds, orders: OrderStore, idempotency: IdempotencyStore, clock: Clock) => {
      const cursors = makeCursors(config.cursorSecret ?? randomBytes(32).toString('hex'))
      return [
        makeListPetsOperation({ listPets: makeListPets({ pets }), cursors, publicUrl }),
        makeCreatePetOperation({ createPet: makeCreatePet({ pets, petIds, idempotency }), publicUrl }),
        makeGetPetOperation({ getPet: makeGetPet({ pets, clock }), ensureOffered: makeEnsureGetPetOffered({ clock }) }),
        makeListOrdersOperation({ listOrders: makeListOrders({ orders }), cursors, publicUrl }),
      ]
    },
    [TOKENS.pets, TOKENS.petIds, TOKENS.orders, TOKENS.idempotency, TOKENS.clock],
  )
  container.bind<RequestListener>(TOKENS.api).toResolvedValue(
    (
      operations: readonly Operation[],
      quotas: QuotaStore,
      failedAuthentications: FailedAuthentications,
      secrets: ApiKeySecrets,
      apiKeys: ApiKeyLookup,
      clock: Clock,
      health: Health,
      metrics: Metrics,
      log: Logger,
    ) => {
      const authenticate = makeAuthenticate({ secrets, apiKeys, failedAuthentications, clock })
      const deps = {
        operations,
        admit: makeAdmit({ authenticate, apiKeys, quotas, plans }),
        failedAuthentications,
        quotas,
        plans,
        health,
        metrics,
        log,
        publicUrl,
        trustedProxyHops,
        maxInFlight,
        docs,
      }
      return makeApp(deps).callback()
    },
    [
      TOKENS.operations,
      TOKENS.quotas,
      TOKENS.failedAuthentications,
      TOKENS.secrets,
      TOKENS.apiKeys,
      TOKENS.clock,
      TOKENS.health,
      TOKENS.metrics,
      TOKENS.log,
    ],
  )
  container
    .bind<RequestListener>(TOKENS.admin)
    .toResolvedValue(
      (health: Health, metrics: Metrics, log: Logger) => makeAdminApp({ health, metrics, log }).callback(),
      [TOKENS.health, TOKENS.metrics, TOKENS.log],
    )
}

function makeLog({ logLevel }: Config, logTo: DestinationStream): Logger {
  return pino({ level: logLevel, base: null }, logTo)
}
