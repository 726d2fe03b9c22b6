import type { RedisOptions } from 'ioredis'
import { Cluster, Redis } from 'ioredis'
import { SettingError } from '../../core/errors.js'

export type RedisClient = Redis | Cluster

const CONNECT_TIMEOUT_MS = 1_000
const RECONNECT_MS = 200
const REDIS_PORT = 6379
const SENTINEL_PORT = 26_379

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
  reconnectOnError: (error: Error) => error.message.includes('READONLY'),
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
  const nodes = hosts.split(',').map((host) => nodeOf(host, scheme.endsWith('+sentinel') ? SENTINEL_PORT : REDIS_PORT))
  const common = {
    ...OPTIONS,
    ...(user ? { username: decoded(user) } : {}),
    ...(password ? { password: decoded(password) } : {}),
    ...(scheme.startsWith('rediss') ? { tls: {} } : {}),
  }
  if (scheme.endsWith('+cluster')) {
    if (path) throw new SettingError('REDIS_URL cannot be used: a cluster has no databases')
    return makeCluster(nodes, common)
  }
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
    // Without it all but the first command to a node that is being connected to would fail. Here, too, nobody waits for long.
    enableOfflineQueue: true,
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
  // Without these only the URL would speak of TLS.
  const tls = common.tls ? { enableTLSForSentinelMode: true, sentinelTLS: common.tls } : {}
  return new Redis({ ...common, ...tls, sentinels: nodes, name, db: databaseOf(database), sentinelRetryStrategy: () => RECONNECT_MS })
}

function nodeOf(text: string, defaultPort: number): Node {
  const [, host = '', portText] = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(text) ?? []
  const port = portText === undefined ? defaultPort : Number(portText)
  if (!host || port < 1 || port > 65_535) throw new SettingError('REDIS_URL cannot be used: a host is not host or host:port')
  return { host: host.replace(/^\[|\]$/g, ''), port }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    throw new SettingError('REDIS_URL cannot be used: a % in the user or the password must be written %25', { cause: error })
  }
}

function databaseOf(text: string): number {
  if (!/^\d{0,4}$/.test(text)) throw new SettingError('REDIS_URL cannot be used: the database must be a number')
  return Number(text)
}
