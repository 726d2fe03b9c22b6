import { ContainerModule } from 'inversify'
import { MongoMetrics } from '../adapters/http/admin/mongo-metrics.js'
import { MongoApiKeyHistory } from '../adapters/mongo/mongo-api-key-history.js'
import { MongoApiKeyStore } from '../adapters/mongo/mongo-api-key-store.js'
import { MongoConnection } from '../adapters/mongo/mongo-connection.js'
import { MongoIdempotencyStore } from '../adapters/mongo/mongo-idempotency-store.js'
import { ensureIndexes } from '../adapters/mongo/mongo-indexes.js'
import { MongoOrderStore } from '../adapters/mongo/mongo-order-store.js'
import { MongoPetIds } from '../adapters/mongo/mongo-pet-ids.js'
import { MongoPetStore } from '../adapters/mongo/mongo-pet-store.js'
import { BULK_TIMEOUT_MS, MongoSeedStore } from '../adapters/mongo/mongo-seed-store.js'
import type { Config, SharedStorage } from '../config.js'
import { makeSeed } from '../core/use-cases/seed.js'
import type { BackingService } from './tokens.js'
import { TOKENS } from './tokens.js'

/** Pets, orders, API keys and idempotency records in MongoDB. */
export function mongoModule({ idBlockSize }: Config, { mongodbUrl }: SharedStorage): ContainerModule {
  const { mongo, bulkMongo, healthMongo } = TOKENS
  return new ContainerModule(({ bind }) => {
    bind(mongo).toResolvedValue(
      (log, { registry }) => {
        const connection = new MongoConnection(mongodbUrl)
        const metrics = new MongoMetrics(registry)
        connection.observe(metrics)
        connection.onChange((isUp, reason) => {
          metrics.countChange({ isUp })
          if (isUp) log.info('MongoDB is available')
          else log.warn({ reason }, 'MongoDB is unavailable: requests that need it get 503')
        })
        return connection
      },
      [TOKENS.log, TOKENS.metrics],
    )
    bind(bulkMongo).toResolvedValue(() => new MongoConnection(mongodbUrl, { callTimeoutMs: BULK_TIMEOUT_MS }))
    bind(healthMongo).toResolvedValue(() => new MongoConnection(mongodbUrl, { maxPoolSize: 1 }))
    bind(TOKENS.pets).toResolvedValue((connection) => new MongoPetStore(connection), [mongo])
    bind(TOKENS.petIds).toResolvedValue((connection) => new MongoPetIds(connection, idBlockSize), [mongo])
    bind(TOKENS.orders).toResolvedValue((connection) => new MongoOrderStore(connection), [mongo])
    bind(TOKENS.apiKeyStore).toResolvedValue((connection, clock) => new MongoApiKeyStore(connection, clock), [mongo, TOKENS.clock])
    bind(TOKENS.apiKeyHistory).toResolvedValue((connection) => new MongoApiKeyHistory(connection), [mongo])
    bind(TOKENS.idempotency).toResolvedValue((connection, clock) => new MongoIdempotencyStore(connection, clock), [mongo, TOKENS.clock])
    bind(TOKENS.seed).toResolvedValue(
      (connection, pets) => makeSeed({ seedStore: new MongoSeedStore(connection), pets }),
      [bulkMongo, TOKENS.pets],
    )
    bind(TOKENS.backingServices).toResolvedValue(
      (requests, bulk, healthChecks): BackingService => ({
        name: 'mongodb',
        isRequired: true,
        isUp: () => healthChecks.isUp(),
        async prepare() {
          await ensureIndexes(mongodbUrl)
          await Promise.all([requests.open(), healthChecks.open()])
        },
        async close() {
          await Promise.all([requests.close(), bulk.close(), healthChecks.close()])
        },
      }),
      [mongo, bulkMongo, healthMongo],
    )
  })
}
