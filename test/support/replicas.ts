import { getMinutePhaseSeconds } from '../../src/core/window.js'
import type { MongoDatabase } from './engines/mongo-engine.js'
import type { ServiceProcess, Settings } from './process.js'
import { runPetstoreJson, startService } from './process.js'
import type { StoredKey } from './stored-key.js'
import { issueStoredKeys } from './stored-key.js'
import { until } from './until.js'

/** Processes that start at the same time: each keeps a CPU core busy for a second. */
const CONCURRENT_STARTS = 2

/** The more time a test requires before the minute of its key ends, the fewer keys qualify. */
const MAX_SECONDS_LEFT = 50

/** The settings of all replicas and commands. */
export function sharedSettings(mongo: Pick<MongoDatabase, 'url'>, redisUrl: string): Settings {
  return { MONGODB_URL: mongo.url, REDIS_URL: redisUrl, CURSOR_SECRET: 'one of 32 bytes or more as it must be', TRUSTED_PROXY_HOPS: '0' }
}

/** Starts this number of service processes on the same data, with a matching EXPECTED_REPLICAS. */
export async function startReplicas(count: number, settings: Settings): Promise<ServiceProcess[]> {
  return startServices(count, { EXPECTED_REPLICAS: `${count}`, ...settings })
}

/** Starts this number of service processes on the same data. */
export async function startServices(count: number, settings: Settings): Promise<ServiceProcess[]> {
  const started: ServiceProcess[] = []
  while (started.length < count) {
    const batch = Math.min(CONCURRENT_STARTS, count - started.length)
    started.push(...(await Promise.all(Array.from({ length: batch }, () => startService(settings)))))
  }
  return started
}

/** By database and limits. The more keys there are, the sooner one of them has a minute with enough time left. */
const unused = new Map<string, StoredKey[]>()

export interface OwnLimits {
  readonly minute: number
  readonly day: number
}

/** Keys issued at a time. Their minutes have different offsets, so one of them probably has enough time left. */
const ISSUE_BATCH_SIZE = 10

/**
 * Returns an unused key of the free plan, or with these limits, whose minute ends in `secondsLeft` or later. If the day ends before
 * that, waits for the next day.
 */
export async function freeKeyWithTime(settings: Settings, secondsLeft: number, limits?: OwnLimits): Promise<StoredKey> {
  if (secondsLeft > MAX_SECONDS_LEFT) throw new Error(`A key whose minute lasts ${secondsLeft} s is too rare`)
  const { MONGODB_URL = '' } = settings
  const pool = JSON.stringify([MONGODB_URL, limits])
  const kept = unused.get(pool) ?? []
  unused.set(pool, kept)
  await until('midnight UTC has passed', () => 86_400 - ((Date.now() / 1000) % 86_400) > 60, 61_000)
  for (;;) {
    const index = kept.findIndex(({ keyId }) => secondsLeftInMinute(keyId) >= secondsLeft)
    const [found] = index >= 0 ? kept.splice(index, 1) : []
    if (found) return found
    const newKey = { owner: 'tests', plan: 'free', ...(limits ? { limits } : {}) } as const
    kept.push(
      ...(await issueStoredKeys(
        MONGODB_URL,
        Array.from({ length: ISSUE_BATCH_SIZE }, () => newKey),
      )),
    )
  }
}

export function secondsLeftInMinute(keyId: string): number {
  return 60 - ((Date.now() / 1000 + getMinutePhaseSeconds(keyId)) % 60)
}

/** The number of the key's current minute. */
export function getMinuteNumber(keyId: string): number {
  return Math.floor((Math.floor(Date.now() / 1000) + getMinutePhaseSeconds(keyId)) / 60)
}

/** What `petstore keys usage --json` prints. */
export interface PrintedUsage {
  readonly minute: { readonly limit: number; readonly used: number; readonly remaining: number }
  readonly day: { readonly limit: number; readonly used: number; readonly remaining: number }
  readonly strikes: number
  readonly ban: { readonly endsAt: string } | null
  readonly banLevel: number
}

export async function toUsage(keyId: string, settings: Settings): Promise<PrintedUsage> {
  return runPetstoreJson(['keys', 'usage', keyId], settings)
}

export interface RedisChanges {
  /** How often the circuit breaker of the replica has opened, and closed again, since the replica started. */
  readonly down: number
  readonly up: number
}

/** Reads the counts from the metrics of a replica. */
export async function redisChanges({ adminUrl }: ServiceProcess): Promise<RedisChanges> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
  const count = (to: string) => Number(new RegExp(`^petstore_redis_changes_total\\{to="${to}"\\} (\\d+)$`, 'm').exec(metrics)?.[1] ?? 0)
  return { down: count('down'), up: count('up') }
}

/** Reads the counts from the log of a replica. */
export function loggedRedisChanges({ logLines }: ServiceProcess): RedisChanges {
  const count = (message: string) => logLines.filter((line) => line.includes(`"msg":"${message}`)).length
  return { down: count('Redis is unavailable: '), up: count('Redis is available: ') }
}
