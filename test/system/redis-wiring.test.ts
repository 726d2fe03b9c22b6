import { expect } from 'chai'
import { readConfig } from '../../src/config.js'
import { makeContainer } from '../../src/wiring/container.js'
import { ServiceParts } from '../../src/wiring/parts.js'
import { TOKENS } from '../../src/wiring/tokens.js'
import { someBanRules, someQuotaRules } from '../support/builders.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { anOwnRedis } from '../support/engines/redis-engine.js'
import { RedisObserver } from '../support/redis-replica.js'
import { takeOne } from '../support/take-one.js'
import { until } from '../support/until.js'
import { inParallel, inSequence } from '../support/verdicts.js'

const FREE = someQuotaRules()
const PREFIX = 'shop:'
const HASH = `${PREFIX}quota:{0}:key_one`

describe('the backing service redis', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let observer: RedisObserver

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
  })

  afterEach(async () => {
    await redis.start()
    observer.close()
  })

  after(() => redis?.stop())

  async function makeService() {
    const logLines: Record<string, unknown>[] = []
    const distributed = { mongodbUrl: 'mongodb://127.0.0.1:1/petstore', redisUrl: redis.url, redisPrefix: PREFIX }
    const config = { ...readConfig({}), distributed }
    const container = await makeContainer(config, { write: (line) => void logLines.push(JSON.parse(line)) })
    const service = container.get(ServiceParts).backingServices.find(({ name }) => name === 'redis')
    if (!service) throw new Error('No backing service')
    const { registry } = container.get(TOKENS.metrics)
    const readMetrics = async () => (await registry.metrics()).split('\n')
    return { service, quotas: container.get(TOKENS.quotas), logLines, readMetrics }
  }

  const countReplicas = () => observer.client.zcard(`${PREFIX}replicas:{0}`)

  it('registers a process that serves until it closes, and no command', async () => {
    const [serving, command] = await Promise.all([makeService(), makeService()])
    await serving.service.prepare('serve')
    await command.service.prepare('command')
    expect(await countReplicas()).to.equal(1)
    await command.service.close()
    expect(await countReplicas()).to.equal(1)
    await serving.service.close()
    expect(await countReplicas()).to.equal(0)
  })

  it('uses only keys with the prefix of the settings', async () => {
    const { service, quotas } = await makeService()
    await service.prepare('serve')
    await takeOne(quotas, 'key_one', FREE)
    await service.close()
    expect((await observer.client.keys('*')).filter((name) => !name.startsWith(PREFIX))).to.deep.equal([])
    expect(await observer.client.hget(HASH, 'c')).to.equal('1')
  })

  it('reports strikes that Redis does not know yet before it disconnects', async () => {
    const { service, quotas } = await makeService()
    await service.prepare('serve')
    const rules = someQuotaRules({ limits: { minute: 1 }, ban: someBanRules({ graceMs: -1 }) })
    // The first request is admitted and the second one begins the grace period. Redis decides the first ten rejections.
    await inSequence(30, () => takeOne(quotas, 'key_one', rules))
    expect(Number(await observer.client.hget(HASH, 's'))).to.be.below(28)
    await service.close()
    expect(await observer.client.hget(HASH, 's')).to.equal('28')
  })

  it('logs how many keys have usage that it could not report', async () => {
    const { service, quotas, logLines } = await makeService()
    await service.prepare('serve')
    await redis.kill()
    await until('Redis is unavailable', async () => !(await service.isUp()))
    await inParallel(4, (index) => takeOne(quotas, `key_${index % 2}`, FREE))
    await service.close()
    expect(logLines.at(-1)).to.deep.include({ level: 40, unreportedKeys: 2 })
  })

  it('measures an outage: the breaker, its time open, local grants and pending usage', async () => {
    const { service, quotas, readMetrics } = await makeService()
    expect(await readMetrics()).to.include('petstore_redis_breaker_open 1')
    await service.prepare('serve')
    const readOpenSeconds = async () => {
      const sample = (await readMetrics()).find((line) => line.startsWith('petstore_redis_breaker_open_seconds_total '))
      return Number(sample?.split(' ')[1])
    }
    expect(await readMetrics()).to.include('petstore_redis_breaker_open 0')
    const beforeSeconds = await readOpenSeconds()
    expect(beforeSeconds).to.be.greaterThan(0)
    expect(await readOpenSeconds()).to.equal(beforeSeconds)

    await redis.kill()
    await until('Redis is unavailable', async () => !(await service.isUp()))
    await inParallel(4, (index) => takeOne(quotas, `key_${index % 2}`, FREE))
    expect(await readMetrics()).to.include.members([
      'petstore_redis_breaker_open 1',
      'petstore_local_grants_total 4',
      'petstore_pending_usage_keys 2',
    ])
    expect(await readOpenSeconds()).to.be.greaterThan(beforeSeconds)

    await redis.start()
    await until('Redis is available', () => service.isUp())
    await until('the usage is reported', async () => (await readMetrics()).includes('petstore_pending_usage_keys 0'))
    expect(await readMetrics()).to.include('petstore_redis_breaker_open 0')
    await service.close()
  })

  it('counts each ban once, whether Redis or this replica imposes it', async () => {
    const { service, quotas, readMetrics } = await makeService()
    await service.prepare('serve')
    const rules = someQuotaRules({ limits: { minute: 1 }, ban: someBanRules({ graceMs: -1, minStrikes: 5 }) })
    await inParallel(20, () => takeOne(quotas, 'key_one', rules))
    expect(await readMetrics()).to.include('petstore_bans_total 1')
    await redis.kill()
    await until('Redis is unavailable', async () => !(await service.isUp()))
    await inParallel(20, () => takeOne(quotas, 'key_two', rules))
    expect(await readMetrics()).to.include('petstore_bans_total 2')
    await service.close()
  })

  it('logs and counts the quotas that it has restored after a loss of data', async () => {
    const { service, quotas, logLines, readMetrics } = await makeService()
    await service.prepare('serve')
    await takeOne(quotas, 'key_one', FREE)
    await observer.client.flushall()
    await until('the replica has restored', () => logLines.some(({ keys }) => keys === 1))
    await until('Redis is available', () => service.isUp())
    expect(await observer.client.hget(HASH, 'c')).to.equal('1')
    expect(await readMetrics()).to.include('petstore_restored_keys_total 1')
    await service.close()
  })

  it('logs a corrupt hash with the ID of the key', async () => {
    const { service, quotas, logLines } = await makeService()
    await service.prepare('serve')
    await observer.client.set(HASH, 'corrupt')
    await takeOne(quotas, 'key_one', FREE)
    expect(logLines.at(-1)).to.deep.include({ level: 50, keyId: 'key_one' })
    await service.close()
  })
})
