import { ContainerModule } from 'inversify'
import { RedisMetrics } from '../adapters/http/admin/redis-metrics.js'
import { FallbackQuotaStore } from '../adapters/redis/fallback-quota-store.js'
import { RedisConnection } from '../adapters/redis/redis-connection.js'
import { RedisFailedAuthentications } from '../adapters/redis/redis-failed-authentications.js'
import { RedisQuotaControl } from '../adapters/redis/redis-quota-control.js'
import { RedisQuotaStore } from '../adapters/redis/redis-quota-store.js'
import { RejectionCache } from '../adapters/redis/rejection-cache.js'
import { ReplicaRegistry } from '../adapters/redis/replica-registry.js'
import type { Config, SharedStorage } from '../config.js'
import type { BackingService } from './tokens.js'
import { TOKENS } from './tokens.js'

/** Quotas in Redis, shared by all replicas. While Redis is unavailable, each replica grants its share. */
export function redisModule({ plans, expectedReplicas }: Config, { redisUrl, redisPrefix }: SharedStorage): ContainerModule {
  const { redis, clock, log } = TOKENS
  return new ContainerModule(({ bind }) => {
    bind(RedisMetrics).toResolvedValue(({ registry }) => new RedisMetrics(registry), [TOKENS.metrics])
    bind(redis).toResolvedValue(
      (logger, metrics) => {
        const connection = new RedisConnection(redisUrl, { prefix: redisPrefix })
        connection.breaker.onChange((isUp, reason) => {
          metrics.countChange({ isUp })
          if (isUp) logger.info('Redis is available: all replicas share the quotas')
          else logger.warn({ reason }, 'Redis is unavailable: this replica grants its share of the quotas')
        })
        connection.breaker.onRejection((err) => logger.error({ err }, 'Redis rejected a command: this replica decides the request'))
        connection.onQuotaCall((elapsedMs, result) => metrics.observeCall(elapsedMs, result))
        return connection
      },
      [log, RedisMetrics],
    )
    bind(ReplicaRegistry).toResolvedValue(
      (connection, metrics) => {
        const registry = new ReplicaRegistry(connection, expectedReplicas)
        metrics.collectReplicas(() => registry.count)
        return registry
      },
      [redis, RedisMetrics],
    )
    bind(FallbackQuotaStore).toResolvedValue(
      (connection, systemClock, registry, logger, redisMetrics, metrics) => {
        const onBan = () => metrics.bans.inc()
        const store = new RedisQuotaStore(connection, systemClock, {
          onRestore: (keys) => {
            redisMetrics.restoredKeys.inc(keys)
            if (keys > 0) logger.warn({ keys }, 'Redis may have lost data: this replica has restored the quotas that it knew')
          },
          onBan,
          onCorruptHash: (keyId) => logger.error({ keyId }, 'the quota of a key in Redis is corrupt: this replica restores what it knew'),
        })
        registry.onHeartbeat(({ epoch }) => store.openIfEpochChanged(0, epoch))
        const quotas = new FallbackQuotaStore(store, registry, systemClock, {
          onLocalGrant: () => redisMetrics.localGrants.inc(),
          onLocalBan: onBan,
        })
        redisMetrics.collectPendingUsage(() => quotas.pendingKeyCount)
        return quotas
      },
      [redis, clock, ReplicaRegistry, log, RedisMetrics, TOKENS.metrics],
    )
    bind(TOKENS.quotas).toResolvedValue((quotas) => new RejectionCache(quotas), [FallbackQuotaStore])
    bind(TOKENS.usageReader).toService(FallbackQuotaStore)
    bind(TOKENS.quotaControl).toResolvedValue((connection) => new RedisQuotaControl(connection), [redis])
    bind(TOKENS.failedAuthentications).toResolvedValue(
      (connection, systemClock) => new RedisFailedAuthentications(connection, plans.failedAuthenticationsPerMinute, systemClock),
      [redis, clock],
    )
    bind(TOKENS.backingServices).toResolvedValue(
      (connection, quotas, registry, logger): BackingService => ({
        name: 'redis',
        isRequired: false,
        isUp: async () => connection.breaker.isUp,
        async prepare(purpose) {
          await connection.connect()
          if (purpose === 'serve') await registry.start()
        },
        async close() {
          const unreportedKeys = await quotas.reportPendingUsage()
          if (unreportedKeys > 0) logger.warn({ unreportedKeys }, 'stopping without reporting all usage to Redis, which is unavailable')
          await registry.close()
          await connection.close()
        },
      }),
      [redis, FallbackQuotaStore, ReplicaRegistry, log],
    )
  })
}
