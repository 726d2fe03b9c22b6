import { expect } from 'chai'
import type { RedisClient } from '../../../src/adapters/redis/redis-client.js'
import { makeRedisClient } from '../../../src/adapters/redis/redis-client.js'
import { RedisUnavailable, RedisCircuitBreaker } from '../../../src/adapters/redis/redis-circuit-breaker.js'
import { rejection } from '../../contracts/rejection.js'
import { freePort } from '../../support/engines/free-port.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { Onlooker } from '../../support/redis-replica.js'
import type { UnreliableLine } from '../../support/unreliable-line.js'
import { anUnreliableLine } from '../../support/unreliable-line.js'
import { until } from '../../support/until.js'
import { times } from '../../support/verdicts.js'

/** The longest that a request waits, and as much again for a machine that is busy with other things. */
const ONE_TIMEOUT_MS = 90
const PATIENCE_MS = 1_000

const BUSY_FOR_400_MS = `
local function ms() local time = redis.call('TIME') return time[1] * 1000 + time[2] / 1000 end
local till = ms() + 400
while ms() < till do end`

describe('the breaker to Redis', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let line: UnreliableLine
  let onlooker: Onlooker
  const open: RedisCircuitBreaker[] = []

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    await redis.start()
    line = await anUnreliableLine(redis.url)
    onlooker = new Onlooker(redis.url)
    await onlooker.client.flushall()
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all(open.splice(0).map((breaker) => breaker.close()))
    onlooker.close()
    await line.close()
  })

  after(() => redis?.stop())

  async function aCircuitBreaker(url = line.url, connectWithinMs = 5_000) {
    const client = makeRedisClient(url)
    const breaker = new RedisCircuitBreaker(client, { probe: (probing) => probing.set('probe', '1') })
    open.push(breaker)
    const changes: boolean[] = []
    breaker.onChange((isUp) => changes.push(isUp))
    await breaker.connect(connectWithinMs)
    return { client, breaker, changes, increment: () => breaker.call((sending: RedisClient) => sending.incr('count')) }
  }

  function untilIs(isUp: boolean, breaker: RedisCircuitBreaker): Promise<void> {
    return until(isUp ? 'the breaker is up' : 'the breaker is down', () => breaker.isUp === isUp, 10_000)
  }

  it('answers what Redis answers, and tells its listeners once that it is up', async () => {
    const { changes, increment } = await aCircuitBreaker()
    expect([await increment(), await increment()]).to.deep.equal([1, 2])
    expect(changes).to.deep.equal([true])
  })

  it('with nothing at the other end resolves its start in time, says so once, and refuses at once what cannot have been executed', async () => {
    const { breaker, changes, increment } = await aCircuitBreaker(`redis://127.0.0.1:${await freePort()}`, 100)
    expect([breaker.isUp, changes]).to.deep.equal([false, [false]])
    const beganMs = performance.now()
    const failures = await times(200, () => rejection(increment()))
    expect(failures.every((failure) => failure instanceof RedisUnavailable && !failure.maybeExecuted)).to.equal(true)
    expect(performance.now() - beganMs).to.be.below(PATIENCE_MS)
  })

  it('comes up by itself when Redis is started after it', async () => {
    await redis.kill()
    const { breaker, changes, increment } = await aCircuitBreaker(redis.url, 100)
    expect(changes).to.deep.equal([false])
    await redis.start()
    await untilIs(true, breaker)
    expect(await increment()).to.equal(1)
    expect(changes).to.deep.equal([false, true])
  })

  it('on a frozen Redis lets 200 callers at once and 200 more one by one wait for one time-out together', async () => {
    const { changes, increment } = await aCircuitBreaker(redis.url)
    await redis.freeze()
    const beganMs = performance.now()
    const first = await times(200, () => rejection(increment()))
    const firstMs = performance.now() - beganMs
    const later: unknown[] = []
    for (let call = 0; call < 200; call++) later.push(await rejection(increment()))
    const allMs = performance.now() - beganMs

    expect(first.every((failure) => failure instanceof RedisUnavailable && failure.maybeExecuted)).to.equal(true)
    expect(later.every((failure) => failure instanceof RedisUnavailable && !failure.maybeExecuted)).to.equal(true)
    expect(firstMs).to.be.within(ONE_TIMEOUT_MS - 5, ONE_TIMEOUT_MS + PATIENCE_MS)
    expect(allMs - firstMs).to.be.below(PATIENCE_MS)
    expect(changes).to.deep.equal([true, false])
    console.error(`      frozen: 200 at once in ${firstMs.toFixed(0)} ms, 200 in sequence in ${(allMs - firstMs).toFixed(1)} ms`)
  })

  it('sends nothing a second time: what a frozen Redis was asked is executed once when it thaws', async () => {
    const { breaker, increment } = await aCircuitBreaker(redis.url)
    await redis.freeze()
    await times(20, () => rejection(increment()))
    await redis.thaw()
    await untilIs(true, breaker)
    expect(await increment()).to.equal(21)
  })

  for (const [how, pause] of [
    ['paused by CLIENT PAUSE', (client: Onlooker['client']) => client.call('CLIENT', 'PAUSE', '400', 'ALL')],
    ['busy with one command', (client: Onlooker['client']) => client.eval(BUSY_FOR_400_MS, 0)],
  ] as const) {
    it(`on a Redis that is ${how} goes down once, and up again when it answers`, async () => {
      const { breaker, changes, increment } = await aCircuitBreaker(redis.url)
      const paused = pause(onlooker.client).catch(() => undefined)
      if (how.startsWith('paused')) await paused
      await until('it does not answer', async () => (await increment().catch(() => 'away')) === 'away')
      expect(breaker.isUp).to.equal(false)
      await untilIs(true, breaker)
      expect(await increment()).to.be.a('number')
      expect(changes).to.deep.equal([true, false, true])
    })
  }

  it('stays down while every answer comes too late: it does not make one caller after another wait', async () => {
    const { changes, breaker, increment } = await aCircuitBreaker()
    line.delayMs = 200
    const endMs = performance.now() + 2_500
    let waited = 0
    while (performance.now() < endMs) {
      const beganMs = performance.now()
      await increment().catch(() => undefined)
      if (performance.now() - beganMs > ONE_TIMEOUT_MS / 2) waited += 1
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    expect([waited, changes]).to.deep.equal([1, [true, false]])
    line.delayMs = 0
    await untilIs(true, breaker)
    expect(changes).to.deep.equal([true, false, true])
  })

  it('gives up a connection on which nothing comes through any more, and takes a new one', async () => {
    const { breaker, changes, increment } = await aCircuitBreaker()
    line.fallSilent()
    expect(await rejection(increment()))
      .to.be.instanceOf(RedisUnavailable)
      .with.property('maybeExecuted', true)
    line.pass()
    await untilIs(true, breaker)
    expect(await increment()).to.equal(1)
    expect(changes).to.deep.equal([true, false, true])
  })

  for (const [how, password] of [
    ['without a password', ''],
    ['with a password', 'hunter2'],
  ] as const) {
    it(`gives up a connection, too, that was made while nothing came through, ${how}`, async () => {
      if (password) await onlooker.client.config('SET', 'requirepass', password)
      try {
        const { breaker, increment } = await aCircuitBreaker(line.url.replace('redis://', `redis://${password && `:${password}@`}`))
        line.fallSilent()
        expect(await rejection(increment())).to.be.instanceOf(RedisUnavailable)
        const { connections } = line
        await until('it has connected anew', () => line.connections > connections)
        line.pass()
        await untilIs(true, breaker)
        expect(await increment()).to.equal(1)
      } finally {
        if (password) await onlooker.client.config('SET', 'requirepass', '')
      }
    })
  }

  it('says of a command whose answer was lost that it may have been executed, and it was, once', async () => {
    const { breaker, increment } = await aCircuitBreaker()
    line.dropReplies()
    expect(await rejection(increment()))
      .to.be.instanceOf(RedisUnavailable)
      .with.property('maybeExecuted', true)
    line.pass()
    await untilIs(true, breaker)
    expect(await increment()).to.equal(2)
  })

  it('says of a command on a connection that is closed under it that it may have been executed', async () => {
    const { increment } = await aCircuitBreaker()
    line.dropReplies()
    const asked = [rejection(increment()), rejection(increment())]
    line.cut()
    for (const failure of await Promise.all(asked)) expect(failure).to.be.instanceOf(RedisUnavailable).with.property('maybeExecuted', true)
  })

  it('says of a command that Redis refused that it was not executed', async () => {
    const { client, breaker } = await aCircuitBreaker()
    await client.set('text', 'no number')
    expect(await rejection(breaker.call((sending) => sending.incr('text'))))
      .to.be.instanceOf(RedisUnavailable)
      .with.property('maybeExecuted', false)
  })

  it('tells its listeners once of each change, however often Redis goes and comes back', async () => {
    const { breaker, changes, increment } = await aCircuitBreaker(redis.url)
    for (let round = 0; round < 3; round++) {
      await redis.kill()
      await times(20, () => rejection(increment()))
      await untilIs(false, breaker)
      await redis.start()
      await untilIs(true, breaker)
    }
    expect(changes).to.deep.equal([true, false, true, false, true, false, true])
  })

  it('notices a connection that Redis closes though nobody asks anything', async () => {
    const { breaker } = await aCircuitBreaker(redis.url)
    await redis.kill()
    await untilIs(false, breaker)
  })

  it('tells nobody that Redis is away when it is closed itself', async () => {
    const { client, breaker, changes } = await aCircuitBreaker()
    await breaker.close()
    await until('the client has ended', () => client.status === 'end')
    expect(changes).to.deep.equal([true])
  })

  it('is closed in time while Redis is away, and tells nobody', async () => {
    const { breaker, changes } = await aCircuitBreaker()
    line.fallSilent()
    line.cut()
    await untilIs(false, breaker)
    const beganMs = performance.now()
    await breaker.close()
    expect(performance.now() - beganMs).to.be.below(3 * PATIENCE_MS)
    expect(changes).to.deep.equal([true, false])
  })
})
