import { ContainerModule } from 'inversify'
import { FallbackQuotaStore } from '../adapters/redis/fallback-quota-store.js'
import { RedisConnection } from '../adapters/redis/redis-connection.js'
import { RedisFailedAuthentications } from '../adapters/redis/redis-failed-authentications.js'
import { RedisQuotaControl } from '../adapters/redis/redis-quota-control.js'
import { RedisQuotaStore } from '../adapters/redis/redis-quota-store.js'
import { RejectionCache } from '../adapters/redis/rejection-cache.js'
import type { Config, SharedStorage } from '../config.js'
import type { BackingService } from './tokens.js'
import { TOKENS } from './tokens.js'

/** Quotas in Redis, shared by all replicas. While Redis is unavailable, each replica grants its share. */
export function redisModule({ plans, expectedReplicas }: Config, { redisUrl }: SharedStorage): ContainerModule {
  const { redis, clock } = TOKENS
  return new ContainerModule(({ bind }) => {
    bind(redis).toResolvedValue(
      (log, metrics) => {
        const connection = new RedisConnection(redisUrl)
        connection.breaker.onChange((isUp, reason) => {
          metrics.countRedisChange({ isUp })
          if (isUp) log.info('Redis is available: all replicas share the quotas')
          else log.warn({ reason }, 'Redis is unavailable: this replica grants its share of the quotas')
        })
        return connection
      },
      [TOKENS.log, TOKENS.metrics],
    )
    bind(TOKENS.quotas).toResolvedValue(
      (connection, systemClock) =>
        new RejectionCache(new FallbackQuotaStore(new RedisQuotaStore(connection, systemClock), expectedReplicas)),
      [redis, clock],
    )
    bind(TOKENS.quotaControl).toResolvedValue((connection) => new RedisQuotaControl(connection), [redis])
    bind(TOKENS.failedAuthentications).toResolvedValue(
      (connection, systemClock) => new RedisFailedAuthentications(connection, plans.failedAuthenticationsPerMinute, systemClock),
      [redis, clock],
    )
    bind(TOKENS.backingServices).toResolvedValue(
      (connection): BackingService => ({
        name: 'redis',
        isRequired: false,
        isUp: async () => connection.breaker.isUp,
        prepare: () => connection.connect(),
        close: () => connection.close(),
      }),
      [redis],
    )
  })
}
