import { ContainerModule } from 'inversify'
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
  const { mongo, bulkMongo } = TOKENS
  return new ContainerModule(({ bind }) => {
    bind(mongo).toResolvedValue(() => new MongoConnection(mongodbUrl))
    bind(bulkMongo).toResolvedValue(() => new MongoConnection(mongodbUrl, { responseTimeoutMs: BULK_TIMEOUT_MS }))
    bind(TOKENS.pets).toResolvedValue(({ db }) => new MongoPetStore(db), [mongo])
    bind(TOKENS.petIds).toResolvedValue(({ db }) => new MongoPetIds(db, idBlockSize), [mongo])
    bind(TOKENS.orders).toResolvedValue(({ db }) => new MongoOrderStore(db), [mongo])
    bind(TOKENS.apiKeyStore).toResolvedValue(({ db }, clock) => new MongoApiKeyStore(db, clock), [mongo, TOKENS.clock])
    bind(TOKENS.idempotency).toResolvedValue(({ db }, clock) => new MongoIdempotencyStore(db, clock), [mongo, TOKENS.clock])
    bind(TOKENS.seed).toResolvedValue(({ db }, pets) => makeSeed({ seedStore: new MongoSeedStore(db), pets }), [bulkMongo, TOKENS.pets])
    bind(TOKENS.backingServices).toResolvedValue(
      (requests, bulk): BackingService => ({
        name: 'mongodb',
        isRequired: true,
        isUp: () => requests.isUp(),
        async prepare() {
          await ensureIndexes(mongodbUrl)
          await requests.open()
        },
        async close() {
          await Promise.all([requests.close(), bulk.close()])
        },
      }),
      [mongo, bulkMongo],
    )
  })
}
