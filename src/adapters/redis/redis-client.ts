import type { Cluster, Redis } from 'ioredis'

/** A connection to one server, to the primary of a Sentinel, or to a Redis Cluster. */
export type RedisClient = Redis | Cluster

/**
 * Defines a Lua script as a command of the client and returns a function that runs it. Commands are defined for a whole client, so `name` must
 * differ from those of other scripts. The number of keys is the first argument of each call.
 */
export function defineScript<Arguments extends readonly (string | number)[], Reply>(
  client: RedisClient,
  name: string,
  lua: string,
): (...args: Arguments) => Promise<Reply> {
  client.defineCommand(name, { lua })
  const command = Reflect.get(client, name) as (...args: Arguments) => Promise<Reply>
  return command.bind(client)
}
