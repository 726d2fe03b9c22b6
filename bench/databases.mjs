// Starts Redis and MongoDB, and fills databases with pets and API keys.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { startMongoContainer } from '../dist/test/support/engines/mongo-engine.js'
import { withDatabase } from '../dist/test/support/engines/mongo-url.js'
import { startRedisProcess } from '../dist/test/support/engines/redis-process.js'
import { issueStoredKeys } from '../dist/test/support/stored-key.js'
import { NO_LIMITS } from './servers.mjs'

const MAIN = fileURLToPath(new URL('../dist/src/main.js', import.meta.url))
const KEYS = 1_000
/** The keys of a batch are written at the same time. */
const KEYS_PER_BATCH = 50
/** Reached by the first request of a load. */
const LOW_LIMITS = { minute: 1, day: 1_000_000 }

/** Starts each engine when a scene first needs it. All scenes and servers share them. */
export class Databases {
  #redis
  #mongo
  #storages = new Map()

  async redis() {
    this.#redis ??= connectToNewRedis()
    return this.#redis
  }

  /** Each scene begins without the quotas of the one before. Call this while no server runs. */
  async flushRedis() {
    if (this.#redis) await (await this.#redis).operator.flushall()
  }

  /** The engines themselves end with the process. */
  async close() {
    if (this.#redis) (await this.#redis).operator.disconnect()
  }

  async versions() {
    const redis = this.#redis && /redis_version:(\S+)/.exec(await (await this.#redis).operator.info('server'))[1]
    return { redis, mongodb: this.#mongo && (await this.#mongo).description }
  }

  /** Resolves to the URLs of a database with this number of pets, an API key for each of many clients, and one with low limits. */
  async makeStorage(pets) {
    const storage = this.#storages.get(pets) ?? this.#makeStorage(pets)
    this.#storages.set(pets, storage)
    return storage
  }

  async #makeStorage(pets) {
    this.#mongo ??= startMongoContainer()
    const [{ url }, redis] = await Promise.all([this.#mongo, this.redis()])
    const mongodbUrl = withDatabase(url, `bench_${pets}`)
    const env = { PATH: process.env.PATH, MONGODB_URL: mongodbUrl, REDIS_URL: redis.url }
    await promisify(execFile)(process.execPath, [MAIN, 'seed', '--pets', `${pets}`, '--orders', '0'], { env })
    const newKey = (limits) => ({ owner: 'bench', plan: 'enterprise', limits })
    const keys = []
    while (keys.length < KEYS) keys.push(...(await issueStoredKeys(mongodbUrl, Array(KEYS_PER_BATCH).fill(newKey(NO_LIMITS)))))
    const [exhaustedKey] = await issueStoredKeys(mongodbUrl, [newKey(LOW_LIMITS)])
    return { mongodbUrl, redisUrl: redis.url, keys, exhaustedKey }
  }
}

async function connectToNewRedis() {
  const { url } = await startRedisProcess()
  // When the bench is interrupted, the server ends first.
  const operator = new Redis(url, { retryStrategy: () => null })
  return { url, operator }
}

/** The CPU time of the server so far, in µs. */
export async function readRedisCpuMicros({ operator }) {
  const info = await operator.info('cpu')
  const seconds = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)[1])
  return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1_000_000
}

/** The sum of the memory of all keys. */
export async function sumRedisBytes({ operator }) {
  const names = await operator.keys('*')
  const sizes = await Promise.all(names.map((name) => operator.memory('USAGE', name)))
  return sizes.reduce((sum, size) => sum + size, 0)
}
