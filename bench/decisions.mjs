// Measures quota decisions per second and the cost of one decision: the script of the service and the stock limiters of
// rate-limiter-flexible.
// This is the scene `decisions` of npm run bench. Build first, then: node bench/decisions.mjs [rounds] [decisions per round]
// All candidates run in this process, on the same Redis, with the same client settings, and take turns within each round. Every request is
// admitted.
import { cpus } from 'node:os'
import { RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible'
import { SystemClock } from '../dist/src/adapters/node/system-clock.js'
import { FallbackQuotaStore } from '../dist/src/adapters/redis/fallback-quota-store.js'
import { makeRedisClient } from '../dist/src/adapters/redis/make-redis-client.js'
import { RedisConnection } from '../dist/src/adapters/redis/redis-connection.js'
import { RedisQuotaStore } from '../dist/src/adapters/redis/redis-quota-store.js'
import { RejectionCache } from '../dist/src/adapters/redis/rejection-cache.js'
import { startRedisProcess } from '../dist/test/support/engines/redis-process.js'
import { median } from './measure.mjs'

const CONCURRENCY = 64
const KEYS = 1_000
const LIMIT = 1_000_000_000
const SECONDS = { minute: 60, day: 86_400 }
const PREFIX = 'petstore:'
const RULES = {
  limits: { minute: LIMIT, day: LIMIT },
  mode: 'enforce',
  ban: { graceMs: 1_000, minStrikes: 60, firstMs: 60_000, longestMs: 86_400_000, forgetAfterMs: 86_400_000 },
}

if (process.argv[2] === '--check') process.exit()
const [rounds, decisions] = [Number(process.argv[2] ?? 10), Number(process.argv[3] ?? 10_000)]
if (![rounds, decisions].every((each) => Number.isInteger(each) && each >= 1 && each <= 1_000_000)) {
  fail('usage: node bench/decisions.mjs [rounds] [decisions per round]')
}

const { url, server } = await startRedisProcess()
const operator = await connect(url)
try {
  await compare()
} finally {
  operator.disconnect()
  await server.stop()
}

async function compare() {
  const candidates = [await makeServiceStore(), await makeServiceScript(), await makeStockWindow(), await makeStockUnion()]
  for (const candidate of candidates) await measure(candidate, decisions)

  const measured = new Map(candidates.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    // Each round starts with a different candidate.
    const turn = candidates.map((_, index) => candidates[(index + round) % candidates.length])
    for (const candidate of turn) measured.get(candidate.name).push(await measure(candidate, decisions))
  }
  for (const { close } of candidates) await close()

  const version = /redis_version:(\S+)/.exec(await operator.info('server'))[1]
  console.log(`node ${process.version}, Redis ${version}, ${cpus().length} × ${cpus()[0]?.model}`)
  console.log(`${rounds} rounds of ${decisions} decisions each, ${CONCURRENCY} at a time, over ${KEYS} keys; medians of the rounds\n`)
  console.log(row(['', 'decisions/s', 'p50 ms', 'p99 ms', 'client CPU µs', 'Redis CPU µs', 'bytes per key']))
  for (const { name, listRedisKeys } of candidates) {
    const formatMedian = (metric, digits) => median(measured.get(name).map((each) => each[metric])).toFixed(digits)
    const bytes = await sumBytes(listRedisKeys('key_7'))
    console.log(
      row([
        name,
        formatMedian('perSecond', 0),
        formatMedian('p50Ms', 2),
        formatMedian('p99Ms', 2),
        formatMedian('clientMicros', 1),
        formatMedian('redisMicros', 1),
        bytes,
      ]),
    )
  }
  console.log('\nratio of decisions/s, client CPU and Redis CPU, medians of the rounds')
  for (const { name: ours } of candidates.slice(0, 2)) {
    for (const { name: stock } of candidates.slice(2)) {
      const ratio = (metric) =>
        median(measured.get(ours).map((each, round) => each[metric] / measured.get(stock)[round][metric])).toFixed(2)
      console.log(`${ours} : ${stock} = ${ratio('perSecond')}, ${ratio('clientMicros')}, ${ratio('redisMicros')}`)
    }
  }
}

/** The store of the service. */
async function makeServiceStore() {
  const redis = new RedisConnection(url, { prefix: PREFIX })
  const clock = new SystemClock()
  const quotas = new RejectionCache(new FallbackQuotaStore(new RedisQuotaStore(redis, clock), { count: 1 }, clock))
  await redis.connect()
  redis.breaker.onChange((isUp) => {
    if (!isUp) fail('Redis did not respond within 90 ms: this machine is too busy for a comparison')
  })
  return {
    name: 'service store, both windows and bans',
    decide: async (keyId) => (await quotas.take(keyId, RULES, { version: 1 })).kind === 'admitted',
    listRedisKeys: (keyId) => [redis.keys.quota(keyId)],
    close: () => redis.close(),
  }
}

/** The script of the service, without the fallback and the cache. */
async function makeServiceScript() {
  const redis = new RedisConnection(url, { prefix: PREFIX })
  await redis.connect()
  return {
    name: 'service script alone',
    decide: async (keyId) => (await redis.quotaHash.take(keyId, RULES, { version: 1 })).outcome === 'done',
    listRedisKeys: (keyId) => [redis.keys.quota(keyId)],
    close: () => redis.close(),
  }
}

async function makeStockWindow() {
  const storeClient = await connect(url)
  const limiter = makeLimiter(storeClient, 'minute', 'single')
  return makeStock('RateLimiterRedis, one window', limiter, storeClient, (keyId) => [`single:${keyId}`])
}

async function makeStockUnion() {
  const storeClient = await connect(url)
  const union = new RateLimiterUnion(makeLimiter(storeClient, 'minute', 'minute'), makeLimiter(storeClient, 'day', 'day'))
  return makeStock('RateLimiterUnion, two windows', union, storeClient, (keyId) => [`minute:${keyId}`, `day:${keyId}`])
}

function makeLimiter(storeClient, window, keyPrefix) {
  return new RateLimiterRedis({ storeClient, keyPrefix, points: LIMIT, duration: SECONDS[window] })
}

function makeStock(name, limiter, client, listRedisKeys) {
  const decide = (keyId) => limiter.consume(keyId).then(() => true)
  return { name, decide, listRedisKeys, close: async () => client.disconnect() }
}

async function measure({ name, decide }, count) {
  const durationsMs = []
  let left = count
  const redisBefore = await redisCpuMicros()
  const cpuBefore = process.cpuUsage()
  const startMs = performance.now()
  const client = async () => {
    while (left > 0) {
      left -= 1
      const sentMs = performance.now()
      if (!(await decide(`key_${left % KEYS}`))) throw new Error(`${name} rejected a request`)
      durationsMs.push(performance.now() - sentMs)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, client))
  const elapsedMs = performance.now() - startMs
  const { user, system } = process.cpuUsage(cpuBefore)
  const redisMicros = (await redisCpuMicros()) - redisBefore

  const sorted = Float64Array.from(durationsMs).sort()
  return {
    perSecond: (count * 1_000) / elapsedMs,
    p50Ms: sorted[Math.floor(count * 0.5)],
    p99Ms: sorted[Math.floor(count * 0.99)],
    clientMicros: (user + system) / count,
    redisMicros: redisMicros / count,
  }
}

async function redisCpuMicros() {
  const info = await operator.info('cpu')
  const seconds = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)[1])
  return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1_000_000
}

async function sumBytes(keys) {
  const sizes = await Promise.all(keys.map((key) => operator.memory('USAGE', key)))
  return sizes.reduce((sum, size) => sum + size, 0)
}

function row([name, ...cells]) {
  return name.padEnd(34) + cells.map((cell) => `${cell}`.padStart(14)).join('')
}

async function connect(serverUrl) {
  const client = makeRedisClient(serverUrl)
  await client.connect()
  return client
}

function fail(message) {
  console.error(message)
  process.exit(2)
}
