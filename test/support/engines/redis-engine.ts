import { cleanUpAtEnd } from './cleanup.js'
import { findImage, startContainer } from './docker.js'
import { firstAvailable, shareServer, withEngine } from './no-engine.js'
import type { OwnEngine, StartedEngine } from './own-engine.js'
import { toOwnEngine, untilItResponds } from './own-engine.js'
import { flushRedisDatabase, isEmptyRedisDatabase, pingRedis } from './redis-client.js'
import { redisArguments, startRedisProcess } from './redis-process.js'

/** Redis has 16 databases by default. Database 0 is reserved for other users of a configured server. */
const DATABASE_NUMBERS = Array.from({ length: 15 }, (_, index) => index + 1)

/** A database that belongs to one suite, on a server that the whole test run shares. It is empty at first. */
export interface RedisDatabase {
  readonly url: string
  flush(): Promise<void>
  /** Flushes the database and makes it available to the next suite. */
  release(): Promise<void>
}

/** For a `before` hook. Skips the suite if there is no Redis, and fails it if Redis does not start. */
export async function aRedisDatabase(context: Mocha.Context): Promise<RedisDatabase> {
  return withEngine(context, async () => {
    const url = await takeEmptyDatabase(await findSharedServer())
    const flush = () => flushRedisDatabase(url)
    const flushAtEnd = process.env['REDIS_URL'] ? cleanUpAtEnd(flush) : flush
    return {
      url,
      flush,
      async release() {
        await flushAtEnd()
        taken.delete(url)
      },
    }
  })
}

/**
 * A server that a suite may freeze, kill and start again, with additional arguments for redis-server. Never the server of REDIS_URL.
 * A process is preferred, because it starts faster than a container.
 */
export async function anOwnRedis(context: Mocha.Context, extraArgs: readonly string[] = []): Promise<OwnEngine> {
  const start = () =>
    firstAvailable(
      () => startRedisProcess(extraArgs),
      () => startRedisContainer(extraArgs),
    )
  return withEngine(context, async () => toOwnEngine(await start(), pingRedis))
}

async function startRedisContainer(extraArgs: readonly string[] = []): Promise<StartedEngine> {
  const image = await findImage({ variable: 'REDIS_IMAGE', official: 'redis:7', recipe: 'redis' })
  const { host, port, server } = await startContainer({
    image,
    readyLine: /Ready to accept connections/,
    // In cluster mode, a server announces its own port.
    innerPort: (outerPort) => outerPort,
    command: (innerPort) => [...redisArguments(innerPort), '--bind', '0.0.0.0', ...extraArgs],
  })
  const url = `redis://${host}:${port}`
  await untilItResponds(url, pingRedis)
  return { url, description: `${image} in Docker`, server }
}

const findSharedServer = shareServer('REDIS_URL', pingRedis, () => firstAvailable(startRedisContainer, startRedisProcess))

const taken = new Set<string>()

/** A configured server may have other users: their data stays unchanged. */
async function takeEmptyDatabase(serverUrl: string): Promise<string> {
  for (const number of DATABASE_NUMBERS) {
    const url = withDatabaseNumber(serverUrl, number)
    if (taken.has(url)) continue
    taken.add(url)
    if (await isEmptyRedisDatabase(url)) return url
    taken.delete(url)
  }
  throw new Error('All databases from 1 to 15 of the Redis server are in use or contain data')
}

export function withDatabaseNumber(serverUrl: string, number: number): string {
  const url = new URL(serverUrl)
  url.pathname = `/${number}`
  return url.href
}
