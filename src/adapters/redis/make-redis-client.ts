import type { RedisOptions } from 'ioredis'
import { Cluster, Redis } from 'ioredis'
import { SettingError } from '../../core/errors.js'
import { makeConnector, makeSentinelConnector } from './connectors.js'
import type { RedisClient } from './redis-client.js'
import { readTls, TLS_OPTIONS } from './redis-tls.js'

const CONNECT_TIMEOUT_MS = 1_000
const RECONNECT_MS = 200
const REDIS_PORT = 6379
const SENTINEL_PORT = 26_379

/** A command without a response is never sent again: it may have been executed and would count twice. Without a connection it fails at once. */
const OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: CONNECT_TIMEOUT_MS,
  enableReadyCheck: false,
  retryStrategy: () => RECONNECT_MS,
  // A primary that became a replica still responds but is read-only.
  reconnectOnError: (error: Error) => error.message.includes('READONLY'),
} satisfies RedisOptions

const URL_SHAPE =
  /^(?<scheme>rediss?(?:\+cluster|\+sentinel)?):\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^@/?]+)(?:\/(?<path>[^?]*))?(?:\?(?<query>[^@]*))?$/

const SENTINEL_OPTIONS = ['sentinelUsername', 'sentinelPassword'] as const
const URL_OPTIONS = [...TLS_OPTIONS, ...SENTINEL_OPTIONS]

type UrlOptions = Readonly<Partial<Record<(typeof URL_OPTIONS)[number], string>>>

/**
 * Reads `redis://` and `rediss://` (one server, with `/<number>` for a database), `redis+cluster://host,host` and
 * `redis+sentinel://host,host/<name of the primary>`, each with an optional `user:password@`, with `rediss` for TLS and with
 * `?option=value&…`. Reads the files that the options name. Throws `SettingError`, which never contains a password.
 */
export function makeRedisClient(url: string): RedisClient {
  const { scheme = '', user, password, hosts = '', path = '', query = '' } = URL_SHAPE.exec(url)?.groups ?? {}
  if (!scheme)
    throw new SettingError(
      'REDIS_URL cannot be used: it must be redis://, redis+cluster:// or redis+sentinel:// (rediss for TLS) and hosts; write an @ in a password or a path as %40',
    )
  const nodes = hosts.split(',').map((host) => parseNode(host, scheme.endsWith('+sentinel') ? SENTINEL_PORT : REDIS_PORT))
  const options = parseOptions(query, scheme)
  const common = {
    ...OPTIONS,
    ...(user ? { username: decode(user) } : {}),
    ...(password ? { password: decode(password) } : {}),
    ...(scheme.startsWith('rediss') ? { tls: readTls(options) } : {}),
  }
  if (scheme.endsWith('+cluster')) {
    if (path) throw new SettingError('REDIS_URL cannot be used: a cluster has no databases')
    return makeCluster(nodes, common)
  }
  if (scheme.endsWith('+sentinel')) return makeSentinel(nodes, path, common, options)
  const [node, ...others] = nodes
  if (!node || others.length > 0)
    throw new SettingError('REDIS_URL cannot be used: several hosts require redis+cluster:// or redis+sentinel://')
  return makeSingle(node, path, common)
}

function parseOptions(query: string, scheme: string): UrlOptions {
  // URLSearchParams would accept a malformed % and decode a + as a space.
  decode(query)
  const options: Partial<Record<string, string>> = {}
  for (const [name, value] of new URLSearchParams(query.replaceAll('+', '%2B'))) {
    // The text after an & in a password looks like an option, so the error must not contain it.
    if (!isOneOf(URL_OPTIONS, name) && !value)
      throw new SettingError('REDIS_URL cannot be used: an option has no value; write an & in a password as %26')
    if (!isOneOf(URL_OPTIONS, name))
      throw new SettingError(`REDIS_URL cannot be used: it has an unknown option ${name}; the options are ${URL_OPTIONS.join(', ')}`)
    if (!value) throw new SettingError(`REDIS_URL cannot be used: ${name} has no value`)
    if (options[name] !== undefined) throw new SettingError(`REDIS_URL cannot be used: ${name} is set twice`)
    if (isOneOf(TLS_OPTIONS, name) && !scheme.startsWith('rediss'))
      throw new SettingError(`REDIS_URL cannot be used: ${name} requires a URL that begins with rediss`)
    if (isOneOf(SENTINEL_OPTIONS, name) && !scheme.endsWith('+sentinel'))
      throw new SettingError(`REDIS_URL cannot be used: ${name} requires redis+sentinel:// or rediss+sentinel://`)
    options[name] = value
  }
  if (options['sentinelUsername'] !== undefined && options['sentinelPassword'] === undefined)
    throw new SettingError('REDIS_URL cannot be used: sentinelUsername requires sentinelPassword')
  return options
}

function isOneOf<Name extends string>(names: readonly Name[], name: string): name is Name {
  return (names as readonly string[]).includes(name)
}

type CommonOptions = typeof OPTIONS & Pick<RedisOptions, 'username' | 'password' | 'tls'>

interface Node {
  readonly host: string
  readonly port: number
}

function makeSingle(node: Node, path: string, common: CommonOptions): Redis {
  const client: Redis = new Redis({
    ...common,
    ...node,
    db: parseDatabase(path),
    Connector: makeConnector((error) => client.emit('nodeError', error)),
  })
  return client
}

function makeCluster(nodes: Node[], common: CommonOptions): Cluster {
  const cluster: Cluster = new Cluster(nodes, {
    lazyConnect: true,
    // Otherwise all commands except the first would fail until the node is connected. The circuit breaker limits how long commands wait.
    enableOfflineQueue: true,
    enableReadyCheck: false,
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    clusterRetryStrategy: () => RECONNECT_MS,
    // Otherwise commands are sent a second time.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    // Certificates contain host names, but ioredis replaces the host names of the URL with IP addresses.
    ...(common.tls ? { dnsLookup: (host, callback) => callback(null, host) } : {}),
    redisOptions: { ...common, Connector: makeConnector((error) => cluster.emit('nodeError', error)) },
  })
  return cluster
}

function makeSentinel(nodes: Node[], path: string, common: CommonOptions, options: UrlOptions): Redis {
  const [name = '', database = ''] = path.split('/')
  if (!name) throw new SettingError('REDIS_URL cannot be used: redis+sentinel:// requires the name of the primary after the hosts')
  const { sentinelUsername, sentinelPassword } = options
  const client: Redis = new Redis({
    ...common,
    // Without these options, ioredis connects to Sentinels and to the primary without TLS.
    ...(common.tls ? { enableTLSForSentinelMode: true, sentinelTLS: common.tls } : {}),
    sentinels: nodes,
    ...(sentinelUsername === undefined ? {} : { sentinelUsername }),
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    name,
    db: parseDatabase(database),
    sentinelRetryStrategy: () => RECONNECT_MS,
    Connector: makeSentinelConnector((error) => client.emit('sentinelError', error)),
  })
  return client
}

function parseNode(text: string, defaultPort: number): Node {
  const [, host = '', portText] = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(text) ?? []
  const port = portText === undefined ? defaultPort : Number(portText)
  if (!host || port < 1 || port > 65_535) throw new SettingError('REDIS_URL cannot be used: each host must have the form host or host:port')
  return { host: host.replace(/^\[|\]$/g, ''), port }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    throw new SettingError('REDIS_URL cannot be used: write a % in the user, a password or a path as %25', { cause: error })
  }
}

function parseDatabase(text: string): number {
  if (!/^\d{0,4}$/.test(text)) throw new SettingError('REDIS_URL cannot be used: the database must be a number')
  return Number(text)
}
