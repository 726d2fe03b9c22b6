import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import type { RedisConnection } from '../../src/adapters/redis/redis-connection.js'
import { RedisFailedAuthentications } from '../../src/adapters/redis/redis-failed-authentications.js'
import { RedisQuotaControl } from '../../src/adapters/redis/redis-quota-control.js'
import { RedisQuotaStore } from '../../src/adapters/redis/redis-quota-store.js'
import type { Clock } from '../../src/core/ports/clock.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { countCommands } from '../support/engines/redis-client.js'
import { anOwnRedis } from '../support/engines/redis-engine.js'
import { aPatientConnection } from '../support/redis-replica.js'
import { until } from '../support/until.js'
import { describeFailedAuthentications } from './failed-authentications.contract.js'
import type { Opened, Outage } from './opened.js'
import { describeQuotaControl } from './quota-control.contract.js'
import { describeQuotaStore } from './quota-store.contract.js'

/** A server of this file's own, emptied for each test and taken away in some. */
let redis: OwnEngine
const connections: RedisConnection[] = []

const outage: Outage = {
  begin: () => redis.kill(),
  async end() {
    await redis.start()
    await until('every connection is used again', () => connections.every(({ breaker }) => breaker.isUp))
  },
}

describe('on a real Redis', function () {
  this.timeout(60_000)

  before(async function () {
    // What was acknowledged outlives a kill, so that the outage tests can tell it from what was not.
    redis = await anOwnRedis(this, ['--appendonly', 'yes', '--appendfsync', 'always'])
  })

  after(() => redis?.stop())

  describeQuotaStore('in Redis', (clock) => open(clock, (connection) => quotaStore(connection, clock)), outage)
  describeQuotaControl(
    'in Redis',
    (clock) => open(clock, (connection) => ({ quotas: quotaStore(connection, clock), control: new RedisQuotaControl(connection) })),
    outage,
  )
  describeFailedAuthentications(
    'in Redis',
    (perMinute, clock) => open(clock, (connection) => new RedisFailedAuthentications(connection, perMinute, clock)),
    outage,
    () => countCommands(redis.url),
  )
})

function quotaStore(connection: RedisConnection, clock: Clock): RedisQuotaStore {
  return new RedisQuotaStore({
    redis: connection,
    clock,
    makeLocalQuotas: (sharedClock, known) => new MemoryQuotaStore(sharedClock, { replicas: 1, known }),
  })
}

async function open<Port>(clock: Clock, make: (connection: RedisConnection) => Port): Promise<Opened<Port>> {
  const reopen = async () => {
    // What these suites find has to be exact, also on a machine that is too busy for an answer in time.
    const connection = aPatientConnection(redis.url, clock)
    connections.push(connection)
    const port = make(connection)
    await connection.connect()
    return port
  }
  const port = await reopen()
  await connections[0]?.client.flushall()
  return {
    port,
    reopen,
    async close() {
      await Promise.all(connections.splice(0).map((connection) => connection.close()))
    },
  }
}
