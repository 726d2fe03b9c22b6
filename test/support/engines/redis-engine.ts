import { realpathSync } from 'node:fs'
import { announceEngine } from './announced.js'
import { findDocker } from './docker.js'
import { EngineInDocker } from './engine-in-docker.js'
import { engineSettings } from './engine-settings.js'
import { findProgram } from './find-program.js'
import { homeMadeImage } from './home-made-image.js'
import { setUpPackages } from './machine.js'
import { EngineFailed, firstOf } from './no-engine.js'
import { once } from './once.js'
import type { OwnEngine, StartedEngine } from './own-engine.js'
import { ownEngine } from './own-engine.js'
import { flushRedisDatabase, isEmptyRedisDatabase, pingRedis } from './redis-client.js'
import { redisArguments, startRedisProcess } from './redis-process.js'
import { isRemoved, removeAtTheEnd } from './remnants.js'
import { withPatience } from './with-patience.js'

/** Redis has sixteen unless it was configured otherwise; 0 is everybody's. */
const DATABASE_NUMBERS = Array.from({ length: 15 }, (_, index) => index + 1)

/** A database of its own, empty at first, on a server that the whole run shares. */
export interface RedisDatabase {
  readonly url: string
  /** What the server is, for people. */
  readonly how: string
  flush(): Promise<void>
  /** Flushes it and gives its number back. */
  release(): Promise<void>
}

/** For a `before` hook. Where there is no Redis and none can be set up, the suite is skipped; where one does not start, it fails. */
export async function aRedisDatabase(context: Mocha.Context): Promise<RedisDatabase> {
  return withPatience(context, async () => {
    const server = await sharedServer()
    const url = await anEmptyDatabase(server.url)
    if (server.isConfigured) removeAtTheEnd('redisDatabases', url)
    return {
      url,
      how: server.how,
      flush: () => flushRedisDatabase(url),
      async release() {
        await flushRedisDatabase(url)
        isRemoved('redisDatabases', url)
        taken.delete(url)
      },
    }
  })
}

/**
 * A server that a suite may freeze, kill and start again, with more arguments for redis-server. Rather a process of this machine
 * than a container, because it starts faster; never the one of REDIS_URL, which is nobody's to kill.
 */
export async function anOwnRedis(context: Mocha.Context, extraArgs: readonly string[] = []): Promise<OwnEngine> {
  const asProcess = () => startRedisProcess(extraArgs)
  const asContainer = () => inDocker.start(findDocker, extraArgs)
  return withPatience(context, async () =>
    ownEngine(await firstOf([asProcess, asContainer, () => startInstalledRedis(extraArgs)]), pingRedis),
  )
}

const inDocker = new EngineInDocker({
  name: 'Redis',
  images: ({ redisImage }) => redisImage,
  homeMade() {
    const program = findProgram('redis-server')
    return program === undefined ? undefined : homeMadeImage('redis-image.sh', realpathSync(program))
  },
  script: 'redis-image.sh',
  makingTakes: 'a second',
  server: () => ({
    readyLine: /Ready to accept connections/,
    // The same inside as outside, so that a server in cluster mode speaks of the port where it can be reached.
    innerPort: (port) => port,
    command: (port, extraArgs) => [...redisArguments(port), '--bind', '0.0.0.0', ...extraArgs],
  }),
  url: (host, port) => `redis://${host}:${port}`,
  ping: pingRedis,
})

async function startInstalledRedis(extraArgs: readonly string[] = []): Promise<StartedEngine> {
  await setUpPackages()
  return startRedisProcess(extraArgs)
}

const sharedServer = once(async () => {
  const { redisUrl } = engineSettings()
  if (redisUrl === undefined) {
    const started = await firstOf([() => inDocker.start(findDocker), startRedisProcess, startInstalledRedis])
    return { ...started, isConfigured: false }
  }
  try {
    await pingRedis(redisUrl)
  } catch (error) {
    throw new EngineFailed('The server of REDIS_URL does not answer', { cause: error })
  }
  announceEngine('Redis', 'REDIS_URL')
  return { url: redisUrl, how: 'REDIS_URL', isConfigured: true }
})

const taken = new Set<string>()

/** One that holds data is somebody's, on a server that is not only ours, and is left alone. */
async function anEmptyDatabase(serverUrl: string): Promise<string> {
  for (const number of DATABASE_NUMBERS) {
    const url = withDatabaseNumber(serverUrl, number)
    if (taken.has(url)) continue
    taken.add(url)
    if (await isEmptyRedisDatabase(url)) return url
    taken.delete(url)
  }
  throw new Error('All databases from 1 to 15 of the Redis server are taken or hold data: release or flush one')
}

export function withDatabaseNumber(serverUrl: string, number: number): string {
  const url = new URL(serverUrl)
  url.pathname = `/${number}`
  return url.href
}
