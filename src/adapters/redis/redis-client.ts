import type { RedisOptions } from 'ioredis'
import { Cluster, Redis } from 'ioredis'
import { SettingError } from '../../core/errors.js'

export type RedisClient = Redis | Cluster

const CONNECT_TIMEOUT_MS = 1_000
const RECONNECT_MS = 200

/**
 * A command that has no answer is never sent again: it may have been executed, and would count twice. Whoever asks while there is no
 * connection is told so at once. The first connection is made by `connect`.
 */
const OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: CONNECT_TIMEOUT_MS,
  enableReadyCheck: false,
  retryStrategy: () => RECONNECT_MS,
  // A primary that became a replica still answers, but no longer decides.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} satisfies RedisOptions

const URL_SHAPE =
  /^(?<scheme>rediss?(?:\+cluster|\+sentinel)?):\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^@/?]+)(?:\/(?<path>[^?]*))?$/

/**
 * Reads `redis://` and `rediss://` (one server, with `/<number>` for a database), `redis+cluster://host,host` and
 * `redis+sentinel://host,host/<name of the primary>`, each with `user:password@` where needed and with `rediss+` for TLS.
 * Throws `SettingError`, which repeats no password.
 */
export function makeRedisClient(url: string): RedisClient {
  const { scheme = '', user, password, hosts = '', path = '' } = URL_SHAPE.exec(url)?.groups ?? {}
  if (!scheme)
    throw new SettingError(
      'REDIS_URL cannot be used: it must be redis://, redis+cluster:// or redis+sentinel:// (rediss for TLS) and hosts',
    )
  const nodes = hosts.split(',').map(nodeOf)
  const common = {
    ...OPTIONS,
    ...(user ? { username: decodeURIComponent(user) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(scheme.startsWith('rediss') ? { tls: {} } : {}),
  }
  if (scheme.endsWith('+cluster')) return makeCluster(nodes, common)
  if (scheme.endsWith('+sentinel')) return makeSentinel(nodes, path, common)
  const [node, ...others] = nodes
  if (!node || others.length > 0)
    throw new SettingError('REDIS_URL cannot be used: several hosts need redis+cluster:// or redis+sentinel://')
  return new Redis({ ...common, ...node, db: databaseOf(path) })
}

type CommonOptions = typeof OPTIONS & Pick<RedisOptions, 'username' | 'password' | 'tls'>

interface Node {
  readonly host: string
  readonly port: number
}

function makeCluster(nodes: Node[], common: CommonOptions): Cluster {
  return new Cluster(nodes, {
    lazyConnect: true,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    clusterRetryStrategy: () => RECONNECT_MS,
    // With these, too, a command would be sent a second time.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    redisOptions: common,
  })
}

function makeSentinel(nodes: Node[], path: string, common: CommonOptions): Redis {
  const [name = '', database = ''] = path.split('/')
  if (!name) throw new SettingError('REDIS_URL cannot be used: redis+sentinel:// needs the name of the primary behind the hosts')
  return new Redis({ ...common, sentinels: nodes, name, db: databaseOf(database), sentinelRetryStrategy: () => RECONNECT_MS })
}

function nodeOf(text: string): Node {
  const [, host = '', port = '6379'] = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (!host) throw new SettingError('REDIS_URL cannot be used: a host is not host or host:port')
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

function databaseOf(text: string): number {
  if (!/^\d{0,4}$/.test(text)) throw new SettingError('REDIS_URL cannot be used: the database must be a number')
  return Number(text)
}
