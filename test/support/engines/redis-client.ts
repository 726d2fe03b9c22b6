import { Redis } from 'ioredis'

const RESPONSE_TIMEOUT_MS = 2_000

export async function pingRedis(url: string): Promise<void> {
  await withRedis(url, (client) => client.ping())
}

/** Flushes the database that the URL names. */
export async function flushRedisDatabase(url: string): Promise<void> {
  await withRedis(url, (client) => client.flushdb())
}

export async function isEmptyRedisDatabase(url: string): Promise<boolean> {
  return (await withRedis(url, (client) => client.dbsize())) === 0
}

/** The number of commands that the server has executed, including those in scripts, but not those of this function. */
export async function countCommands(url: string): Promise<number> {
  const stats = await withRedis(url, (client) => client.info('commandstats'))
  const own = ['info', 'client|setinfo', 'hello', 'select']
  const counts = [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].filter(([, command = '']) => !own.includes(command))
  return counts.reduce((sum, [, , calls]) => sum + Number(calls), 0)
}

/** A short-lived connection that fails instead of waiting. */
export async function withRedis<Outcome>(
  url: string,
  work: (client: Redis) => Promise<Outcome>,
  withinMs = RESPONSE_TIMEOUT_MS,
): Promise<Outcome> {
  const limits = { connectTimeout: withinMs, commandTimeout: withinMs, disconnectTimeout: withinMs }
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, ...limits })
  // Each command rejects by itself. Without a listener, the error would also be printed.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } finally {
    client.disconnect()
  }
}
