import { expect } from 'chai'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import type { FaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { freePort } from '../../support/engines/free-port.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica, KEYS, RedisObserver, untilUnavailable, untilUp } from '../../support/redis-replica.js'
import { until } from '../../support/until.js'
import { inParallel } from '../../support/verdicts.js'

/** How many replicas are expected while the number is unknown. */
const EXPECTED = 9

describe('the number of replicas', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let observer: RedisObserver
  let proxy: FaultInjectionProxy
  const open: RedisReplica[] = []

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
    proxy = await startFaultInjectionProxy(redis.url)
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all(open.splice(0).map((replica) => replica.close()))
    await proxy.close()
    observer.close()
  })

  after(() => redis?.stop())

  async function aReplica(url = redis.url): Promise<RedisReplica> {
    const replica = await aRedisReplica(url, { replicas: EXPECTED })
    open.push(replica)
    await replica.registry.start()
    return replica
  }

  const untilCount = (count: number, replicas: readonly RedisReplica[], withinMs?: number) =>
    until(`the count is ${count}`, () => replicas.every(({ registry }) => registry.count === count), withinMs)

  it('includes a replica when its start has finished', async () => {
    expect((await aReplica()).registry.count).to.equal(1)
    expect((await aReplica()).registry.count).to.equal(2)
  })

  it('follows replicas that join and leave, on every replica', async () => {
    const replicas = await inParallel(3, () => aReplica())
    await untilCount(3, replicas)
    replicas.push(...(await inParallel(3, () => aReplica())))
    await untilCount(6, replicas)
    for (const replica of replicas.splice(2)) await replica.registry.close()
    await untilCount(2, replicas)
    expect(await observer.client.zcard(KEYS.replicas)).to.equal(2)
  })

  it('no longer includes a replica that has crashed 5 s after its last heartbeat, and includes it again when it is back', async () => {
    const [staying, crashing] = [await aReplica(), await aReplica(`redis://${proxy.address}`)]
    await untilCount(2, [staying, crashing])
    proxy.stopForwarding()
    const stoppedAtMs = performance.now()
    await untilCount(1, [staying], 10_000)
    expect(performance.now() - stoppedAtMs).to.be.within(4_000, 7_000)
    expect(crashing.registry.count, 'the crashed replica keeps the number that it saw last').to.equal(2)
    proxy.resume()
    await untilCount(2, [staying, crashing])
  })

  it('is the expected number only until Redis has responded once', async () => {
    await redis.kill()
    const replica = await aReplica()
    expect(replica.registry.count).to.equal(EXPECTED)
    await redis.start()
    await untilUp(replica)
    await untilCount(1, [replica])
    await redis.kill()
    await untilUnavailable(replica)
    expect(replica.registry.count).to.equal(1)
  })

  it('is the expected number if there is no Redis at all', async () => {
    expect((await aReplica(`redis://127.0.0.1:${await freePort()}`)).registry.count).to.equal(EXPECTED)
  })

  it('does not drop when Redis has lost its data and only some replicas have registered again', async () => {
    const [first, second] = [await aReplica(), await aReplica(`redis://${proxy.address}`)]
    await untilCount(2, [first, second])
    const counts: number[] = []
    first.registry.onHeartbeat(({ replicas }) => counts.push(replicas))
    proxy.stopForwarding()
    await observer.client.flushall()
    await until('the first replica has registered again', () => counts.includes(1))
    expect(first.registry.count).to.equal(2)
    await untilCount(1, [first], 10_000)
  })

  it('does not include a replica that closes while its heartbeat is in flight', async () => {
    const staying = await aReplica()
    for (let round = 0; round < 20; round++) {
      const closing = await aRedisReplica(redis.url, { replicas: EXPECTED })
      open.push(closing)
      const starting = closing.registry.start()
      await closing.registry.close()
      await starting
    }
    expect(await observer.client.zcard(KEYS.replicas)).to.equal(1)
    expect(staying.registry.count).to.be.at.least(1)
  })
})
