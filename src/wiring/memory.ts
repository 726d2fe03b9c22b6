import { ContainerModule } from 'inversify'
import { MemoryApiKeyHistory } from '../adapters/memory/memory-api-key-history.js'
import { MemoryApiKeyStore } from '../adapters/memory/memory-api-key-store.js'
import { MemoryFailedAuthentications } from '../adapters/memory/memory-failed-authentications.js'
import { MemoryIdempotencyStore } from '../adapters/memory/memory-idempotency-store.js'
import { MemoryOrderStore } from '../adapters/memory/memory-order-store.js'
import { MemoryPetIds } from '../adapters/memory/memory-pet-ids.js'
import { MemoryPetStore } from '../adapters/memory/memory-pet-store.js'
import { MemoryQuotaStore } from '../adapters/memory/memory-quota-store.js'
import { SAMPLE_ORDERS, SAMPLE_PETS } from '../adapters/memory/sample-data.js'
import type { Config } from '../config.js'
import { TOKENS } from './tokens.js'

/** Embedded mode: all data lives in this process. */
export function memoryModule({ plans, hasSampleData }: Config): ContainerModule {
  const pets = hasSampleData ? SAMPLE_PETS : []
  const orders = hasSampleData ? SAMPLE_ORDERS : []
  return new ContainerModule(({ bind }) => {
    bind(TOKENS.pets).toResolvedValue(() => new MemoryPetStore(pets))
    bind(TOKENS.petIds).toResolvedValue(() => new MemoryPetIds(pets.at(-1)?.id))
    bind(TOKENS.orders).toResolvedValue(() => new MemoryOrderStore(orders))
    bind(MemoryApiKeyHistory).toResolvedValue(() => new MemoryApiKeyHistory())
    bind(TOKENS.apiKeyHistory).toService(MemoryApiKeyHistory)
    bind(TOKENS.apiKeyStore).toResolvedValue((clock, history) => new MemoryApiKeyStore(clock, history), [TOKENS.clock, MemoryApiKeyHistory])
    bind(TOKENS.idempotency).toResolvedValue((clock) => new MemoryIdempotencyStore(clock), [TOKENS.clock])
    bind(MemoryQuotaStore).toResolvedValue(
      (clock, metrics) => new MemoryQuotaStore(clock, () => metrics.bans.inc()),
      [TOKENS.clock, TOKENS.metrics],
    )
    bind(TOKENS.quotas).toService(MemoryQuotaStore)
    bind(TOKENS.quotaControl).toService(MemoryQuotaStore)
    bind(TOKENS.usageReader).toService(MemoryQuotaStore)
    bind(TOKENS.failedAuthentications).toResolvedValue(
      (clock) => new MemoryFailedAuthentications(plans.failedAuthenticationsPerMinute, clock),
      [TOKENS.clock],
    )
  })
}
