import { FallbackQuotaStore } from '../../src/adapters/redis/fallback-quota-store.js'
import type { RedisConnection } from '../../src/adapters/redis/redis-connection.js'
import { RedisFailedAuthentications } from '../../src/adapters/redis/redis-failed-authentications.js'
import { RedisQuotaControl } from '../../src/adapters/redis/redis-quota-control.js'
import { RedisQuotaStore } from '../../src/adapters/redis/redis-quota-store.js'
import { RejectionCache } from '../../src/adapters/redis/rejection-cache.js'
import type { Clock } from '../../src/core/ports/clock.js'
import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { countCommands, flushRedisDatabase } from '../support/engines/redis-client.js'
import { anOwnRedis } from '../support/engines/redis-engine.js'
import { aConnectionWithoutTimeout } from '../support/redis-replica.js'
import { until } from '../support/until.js'
import { describeFailedAuthentications } from './failed-authentications.contract.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { describeQuotaControl } from './quota-control.contract.js'
import { describeQuotaStore } from './quota-store.contract.js'
import { describeUsageReader } from './usage-reader.contract.js'

/** A server of this file, emptied before each test. */
let redis: OwnEngine
const connections: RedisConnection[] = []

const outage: Outage = {
  begin: () => redis.kill(),
  async end() {
    await redis.start()
    await until('every circuit breaker is closed', () => connections.every(({ breaker }) => breaker.isUp))
  },
}

describe('on a real Redis', function () {
  this.timeout(60_000)

  before(async function () {
    // Acknowledged data survives a kill, so that the outage tests can tell it from data that was not acknowledged.
    redis = await anOwnRedis(this, ['--appendonly', 'yes', '--appendfsync', 'always'])
  })

  after(() => redis?.stop())

  // Without the fallback, the store throws in an outage, so this suite has no outage tests.
  describeQuotaStore('in Redis', (clock) => open(clock, (connection) => aStore(connection, clock)))
  describeQuotaStore('in Redis, with the fallback', (clock) => open(clock, (connection) => withFallback(connection, clock)), outage)
  describeQuotaStore('in Redis, with fallback and cache', (clock) => open(clock, (connection) => withCache(connection, clock)), outage)
  describeQuotaControl(
    'in Redis',
    (clock) => open(clock, (connection) => ({ quotas: withCache(connection, clock), control: new RedisQuotaControl(connection) })),
    outage,
  )
  describeUsageReader(
    'in Redis, with the fallback',
    (clock) =>
      open(clock, (connection) => {
        const store = withFallback(connection, clock)
        return { reader: store, quotas: new RejectionCache(store), control: new RedisQuotaControl(connection) }
      }),
    outage,
  )
  describeFailedAuthentications(
    'in Redis',
    (perMinute, clock) => open(clock, (connection) => new RedisFailedAuthentications(connection, perMinute, clock)),
    outage,
    () => countCommands(redis.url),
  )
})

function aStore(connection: RedisConnection, clock: Clock): RedisQuotaStore {
  return new RedisQuotaStore(connection, clock, { settleMs: 0 })
}

function withFallback(connection: RedisConnection, clock: Clock): FallbackQuotaStore {
  return new FallbackQuotaStore(aStore(connection, clock), { count: 1 }, clock)
}

function withCache(connection: RedisConnection, clock: Clock): QuotaStore {
  return new RejectionCache(withFallback(connection, clock))
}

async function open<Port>(clock: Clock, make: (connection: RedisConnection) => Port): Promise<OpenAdapter<Port>> {
  const reopen = async () => {
    // The results have to be exact, also on a machine that is too busy for responses in time.
    const connection = aConnectionWithoutTimeout(redis.url, clock)
    connections.push(connection)
    const port = make(connection)
    await connection.connect()
    return port
  }
  // Before the adapter connects, so that it does not restore what was flushed.
  await flushRedisDatabase(redis.url)
  const port = await reopen()
  return {
    port,
    reopen,
    async close() {
      await Promise.all(connections.splice(0).map((connection) => connection.close()))
    },
  }
}
