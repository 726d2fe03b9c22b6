import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { expect } from 'chai'
import type { RedisClient } from '../../../src/adapters/redis/redis-client.js'
import { makeRedisClient } from '../../../src/adapters/redis/make-redis-client.js'
import type { RedisCircuitBreakerOptions } from '../../../src/adapters/redis/redis-circuit-breaker.js'
import { RedisUnavailable, RedisCircuitBreaker } from '../../../src/adapters/redis/redis-circuit-breaker.js'
import { rejection } from '../../contracts/rejection.js'
import { freePort } from '../../support/engines/free-port.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { RedisObserver } from '../../support/redis-replica.js'
import type { FaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../../support/fault-injection-proxy.js'
import { until } from '../../support/until.js'
import { inParallel } from '../../support/verdicts.js'

/** The longest that a request waits for Redis. */
const ONE_TIMEOUT_MS = 90
/** Extra time for a busy machine. */
const SLACK_MS = 1_000

const BUSY_FOR_400_MS = `
local function ms() local time = redis.call('TIME') return time[1] * 1000 + time[2] / 1000 end
local till = ms() + 400
while ms() < till do end`

describe('the circuit breaker of Redis', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let proxy: FaultInjectionProxy
  let observer: RedisObserver
  const open: RedisCircuitBreaker[] = []

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    await redis.start()
    proxy = await startFaultInjectionProxy(redis.url)
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all(open.splice(0).map((breaker) => breaker.close()))
    observer.close()
    await proxy.close()
  })

  after(() => redis?.stop())

  async function aCircuitBreaker(url = `redis://${proxy.address}`, connectWithinMs = 5_000) {
    const client = makeRedisClient(url)
    const breaker = new RedisCircuitBreaker(client, someOptions(client))
    open.push(breaker)
    const changes: boolean[] = []
    breaker.onChange((isUp) => changes.push(isUp))
    await breaker.connect(connectWithinMs)
    return { client, breaker, changes, increment: () => breaker.call((sending: RedisClient) => sending.incr('count'), 0) }
  }

  function untilIs(isUp: boolean, breaker: RedisCircuitBreaker): Promise<void> {
    return until(isUp ? 'the breaker is closed' : 'the breaker is open', () => breaker.isUp === isUp, 10_000)
  }

  it('reports that Redis is unavailable once, however often a start retries', async () => {
    const { breaker, changes } = await aCircuitBreaker(`redis://127.0.0.1:${await freePort()}`, 50)
    await breaker.connect(50)
    expect(changes).to.deep.equal([false])
  })

  it('reports how the connection ended if no earlier error is known', async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = makeRedisClient(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const breaker = new RedisCircuitBreaker(client, someOptions(client))
    open.push(breaker)
    const reasons: (string | undefined)[] = []
    breaker.onChange((_isUp, reason) => reasons.push(reason))
    await breaker.connect(500)
    server.close()
    expect(reasons).to.have.lengthOf(1)
    expect(reasons[0]).to.match(/Connection is closed|ECONNRESET|EPIPE|There is no connection/)
  })

  it('returns the responses of Redis, and reports once that Redis is up', async () => {
    const { changes, increment } = await aCircuitBreaker()
    expect([await increment(), await increment()]).to.deep.equal([1, 2])
    expect(changes).to.deep.equal([true])
  })

  it('without a server, stops waiting to connect in time, reports the outage once, and rejects commands at once as not executed', async () => {
    const { breaker, changes, increment } = await aCircuitBreaker(`redis://127.0.0.1:${await freePort()}`, 100)
    expect([breaker.isUp, changes]).to.deep.equal([false, [false]])
    const startMs = performance.now()
    const failures = await inParallel(200, () => rejection(increment()))
    expect(failures.every((failure) => failure instanceof RedisUnavailable && !failure.maybeExecuted)).to.equal(true)
    expect(performance.now() - startMs).to.be.below(SLACK_MS)
  })

  it('closes when Redis starts later', async () => {
    await redis.kill()
    const { breaker, changes, increment } = await aCircuitBreaker(redis.url, 100)
    expect(changes).to.deep.equal([false])
    await redis.start()
    await untilIs(true, breaker)
    expect(await increment()).to.equal(1)
    expect(changes).to.deep.equal([false, true])
  })

  it('delays 200 commands on a frozen Redis by one timeout, and 200 more not at all', async () => {
    const { changes, increment } = await aCircuitBreaker(redis.url)
    await redis.freeze()
    const startMs = performance.now()
    const first = await inParallel(200, () => rejection(increment()))
    const firstMs = performance.now() - startMs
    const later: unknown[] = []
    for (let call = 0; call < 200; call++) later.push(await rejection(increment()))
    const allMs = performance.now() - startMs

    expect(first.every((failure) => failure instanceof RedisUnavailable && failure.maybeExecuted)).to.equal(true)
    expect(later.every((failure) => failure instanceof RedisUnavailable && !failure.maybeExecuted)).to.equal(true)
    expect(firstMs).to.be.within(ONE_TIMEOUT_MS - 5, ONE_TIMEOUT_MS + SLACK_MS)
    expect(allMs - firstMs).to.be.below(SLACK_MS)
    expect(changes).to.deep.equal([true, false])
    console.error(`      frozen: 200 at once in ${firstMs.toFixed(0)} ms, 200 in sequence in ${(allMs - firstMs).toFixed(1)} ms`)
  })

  it('never sends a command twice: a frozen Redis executes each command once after it resumes', async () => {
    const { breaker, increment } = await aCircuitBreaker(redis.url)
    await redis.freeze()
    await inParallel(20, () => rejection(increment()))
    await redis.unfreeze()
    await untilIs(true, breaker)
    expect(await increment()).to.equal(21)
  })

  it('reads responses that have arrived before it opens, if this process was busy', async () => {
    const { breaker, changes, increment } = await aCircuitBreaker(redis.url)
    const reply = increment()
    // The command is sent before the process is busy, and the response arrives meanwhile.
    await new Promise((resolve) => setImmediate(resolve))
    const endMs = performance.now() + 3 * ONE_TIMEOUT_MS
    while (performance.now() < endMs);
    expect(await reply).to.equal(1)
    expect([breaker.isUp, changes]).to.deep.equal([true, [true]])
  })

  for (const [how, pause] of [
    ['paused by CLIENT PAUSE', (client: RedisObserver['client']) => client.call('CLIENT', 'PAUSE', '400', 'ALL')],
    ['busy with one command', (client: RedisObserver['client']) => client.eval(BUSY_FOR_400_MS, 0)],
  ] as const) {
    it(`opens once on a Redis that is ${how}, and closes when it responds`, async () => {
      const { breaker, changes, increment } = await aCircuitBreaker(redis.url)
      const paused = pause(observer.client).catch(() => undefined)
      if (how.startsWith('paused')) await paused
      await until('Redis does not respond', async () => (await increment().catch(() => 'down')) === 'down')
      expect(breaker.isUp).to.equal(false)
      await untilIs(true, breaker)
      expect(await increment()).to.be.a('number')
      expect(changes).to.deep.equal([true, false, true])
    })
  }

  it('stays open while every response is late, so that only one command waits', async () => {
    const { changes, breaker, increment } = await aCircuitBreaker()
    proxy.delayMs = 200
    const endMs = performance.now() + 2_500
    let waited = 0
    while (performance.now() < endMs) {
      const startMs = performance.now()
      await increment().catch(() => undefined)
      if (performance.now() - startMs > ONE_TIMEOUT_MS / 2) waited += 1
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    expect([waited, changes]).to.deep.equal([1, [true, false]])
    proxy.delayMs = 0
    await untilIs(true, breaker)
    expect(changes).to.deep.equal([true, false, true])
  })

  it('replaces a connection that has stopped responding', async () => {
    const { breaker, changes, increment } = await aCircuitBreaker()
    proxy.stopForwarding()
    expect(await rejection(increment()))
      .to.be.instanceOf(RedisUnavailable)
      .with.property('maybeExecuted', true)
    proxy.resume()
    await untilIs(true, breaker)
    expect(await increment()).to.equal(1)
    expect(changes).to.deep.equal([true, false, true])
  })

  for (const [how, password] of [
    ['without a password', ''],
    ['with a password', 'hunter2'],
  ] as const) {
    it(`replaces a connection that has never responded, ${how}`, async () => {
      if (password) await observer.client.config('SET', 'requirepass', password)
      try {
        const { breaker, increment } = await aCircuitBreaker(`redis://${password && `:${password}@`}${proxy.address}`)
        proxy.stopForwarding()
        expect(await rejection(increment())).to.be.instanceOf(RedisUnavailable)
        const { connections } = proxy
        await until('the breaker has a new connection', () => proxy.connections > connections)
        proxy.resume()
        await untilIs(true, breaker)
        expect(await increment()).to.equal(1)
      } finally {
        if (password) await observer.client.config('SET', 'requirepass', '')
      }
    })
  }

  it('reports a command whose response was lost as maybe executed, and Redis has executed it once', async () => {
    const { breaker, increment } = await aCircuitBreaker()
    proxy.dropResponses()
    expect(await rejection(increment()))
      .to.be.instanceOf(RedisUnavailable)
      .with.property('maybeExecuted', true)
    proxy.resume()
    await untilIs(true, breaker)
    expect(await increment()).to.equal(2)
  })

  it('reports a command as maybe executed if its connection is closed', async () => {
    const { increment } = await aCircuitBreaker()
    proxy.dropResponses()
    const commands = [rejection(increment()), rejection(increment())]
    proxy.closeConnections()
    for (const failure of await Promise.all(commands))
      expect(failure).to.be.instanceOf(RedisUnavailable).with.property('maybeExecuted', true)
  })

  it('reports a command that Redis rejected as not executed', async () => {
    const { client, breaker } = await aCircuitBreaker()
    await client.set('text', 'no number')
    expect(await rejection(breaker.call((sending) => sending.incr('text'), 0)))
      .to.be.instanceOf(RedisUnavailable)
      .with.property('maybeExecuted', false)
  })

  it('opens only for the shard whose command failed, and reports once that Redis is unavailable', async () => {
    const client = makeRedisClient(redis.url)
    const breaker = new RedisCircuitBreaker(client, { ...someOptions(client), shardCount: 3 })
    open.push(breaker)
    const changes: boolean[] = []
    breaker.onChange((isUp) => changes.push(isUp))
    await breaker.connect(5_000)
    const fail = (shard: number) => rejection(breaker.call(() => Promise.reject(new Error('connect ECONNREFUSED')), shard))
    await Promise.all([fail(1), fail(2)])
    expect([0, 1, 2].map((shard) => breaker.isClosed(shard))).to.deep.equal([true, false, false])
    expect(await breaker.call((sending) => sending.ping(), 0)).to.equal('PONG')
    await untilIs(true, breaker)
    expect(changes).to.deep.equal([true, false, true])
  })

  it('reports each state change once', async () => {
    const { breaker, changes, increment } = await aCircuitBreaker(redis.url)
    for (let round = 0; round < 3; round++) {
      await redis.kill()
      await inParallel(20, () => rejection(increment()))
      await untilIs(false, breaker)
      await redis.start()
      await untilIs(true, breaker)
    }
    expect(changes).to.deep.equal([true, false, true, false, true, false, true])
  })

  it('opens when Redis closes the connection, even if no command is sent', async () => {
    const { breaker } = await aCircuitBreaker(redis.url)
    await redis.kill()
    await untilIs(false, breaker)
  })

  it('reports nothing when close() is called', async () => {
    const { client, breaker, changes } = await aCircuitBreaker()
    await breaker.close()
    await until('the client has ended', () => client.status === 'end')
    expect(changes).to.deep.equal([true])
  })

  it('finishes close() in time during an outage, and reports nothing', async () => {
    const { breaker, changes } = await aCircuitBreaker()
    proxy.stopForwarding()
    proxy.closeConnections()
    await untilIs(false, breaker)
    const startMs = performance.now()
    await breaker.close()
    expect(performance.now() - startMs).to.be.below(3 * SLACK_MS)
    expect(changes).to.deep.equal([true, false])
  })
})

/** The probe of a server with one shard. */
function someOptions(client: RedisClient): RedisCircuitBreakerOptions {
  return {
    shardCount: 1,
    async probe() {
      await client.set('probe', '1')
      return { epoch: 'one', epochAgeMs: 0, isRestoring: false, replicas: 0 }
    },
    replaceConnection: () => client.disconnect(true),
  }
}
