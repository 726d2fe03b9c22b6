import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import type { TlsServerOptions } from './certificate-authority.js'
import { onFreePort } from './engines/free-port.js'
import { withEngine } from './engines/no-engine.js'
import type { EngineServer } from './engines/own-engine.js'
import { startRedisProcess } from './engines/redis-process.js'
import { startSentinelServer } from './redis-sentinel.js'
import { until } from './until.js'

/** A redis-server process of this machine that listens on 127.0.0.1 with TLS only. */
export interface TlsRedis {
  readonly port: number
  /** A connection of the test, which verifies the server as localhost. */
  connect(options?: { readonly password?: string }): Redis
  kill(): Promise<void>
  stop(): Promise<void>
}

/** For a `before` hook. Skips the suite if redis-server is not installed. */
export async function aTlsRedis(context: Mocha.Context, options: TlsServerOptions, extraArgs: readonly string[] = []): Promise<TlsRedis> {
  const start = async (port: number) => {
    const args = ['--port', '0', '--tls-port', `${port}`, ...tlsSettings(options).flatMap(([name, value]) => [`--${name}`, value])]
    const { server } = await startRedisProcess([...args, ...extraArgs])
    return tlsRedis(port, options, server)
  }
  return withEngine(context, () => onFreePort(start))
}

/** Three nodes that use TLS with clients and each other, and announce themselves as localhost. */
export async function aTlsRedisCluster(context: Mocha.Context, options: TlsServerOptions): Promise<readonly TlsRedis[]> {
  const args = ['--cluster-enabled', 'yes', '--tls-cluster', 'yes', '--cluster-node-timeout', '2000']
  const names = ['--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', 'hostname']
  const nodes = [
    { slots: ['0', '5460'], node: await aTlsRedis(context, options, [...args, ...names]) },
    { slots: ['5461', '10922'], node: await aTlsRedis(context, options, [...args, ...names]) },
    { slots: ['10923', '16383'], node: await aTlsRedis(context, options, [...args, ...names]) },
  ]
  for (const { node, slots } of nodes) {
    const client = node.connect()
    await client.call('CLUSTER', 'ADDSLOTSRANGE', ...slots)
    for (const other of nodes) await client.call('CLUSTER', 'MEET', '127.0.0.1', `${other.node.port}`)
    client.disconnect()
  }
  const isWhole = async ({ node }: { node: TlsRedis }) => {
    const client = node.connect()
    const info = String(await client.call('CLUSTER', 'INFO'))
    const slots = JSON.stringify(await client.call('CLUSTER', 'SLOTS'))
    client.disconnect()
    // A node learns the host names of the others after the slots.
    return info.includes('cluster_state:ok') && slots.match(/"localhost",\d+/g)?.length === nodes.length
  }
  for (const node of nodes) await until('the cluster is whole', () => isWhole(node), 30_000)
  return nodes.map(({ node }) => node)
}

export interface SentinelPlan {
  readonly primary: TlsRedis
  /** The name of the primary in Sentinel. */
  readonly name: string
  readonly primaryPassword: string
  /** The passwords of the default user and of the user `petstore`. */
  readonly sentinelPasswords: { readonly default: string; readonly petstore: string }
}

/** A Sentinel that monitors a primary over TLS and announces it as localhost. */
export async function aTlsSentinel(context: Mocha.Context, options: TlsServerOptions, plan: SentinelPlan): Promise<TlsRedis> {
  return withEngine(context, () => onFreePort((port) => startSentinel(port, options, plan)))
}

async function startSentinel(port: number, options: TlsServerOptions, plan: SentinelPlan): Promise<TlsRedis> {
  const { primary, name, primaryPassword, sentinelPasswords } = plan
  const settings = [
    ['port', '0'],
    ['tls-port', `${port}`],
    ['bind', '127.0.0.1'],
    ...tlsSettings(options),
    ['requirepass', JSON.stringify(sentinelPasswords.default)],
    ['user', `petstore on >${sentinelPasswords.petstore} allcommands allkeys allchannels`],
    ['sentinel', 'resolve-hostnames yes'],
    ['sentinel', 'announce-hostnames yes'],
    ['sentinel', 'announce-ip localhost'],
    ['sentinel', `monitor ${name} localhost ${primary.port} 1`],
    ['sentinel', `auth-pass ${name} ${primaryPassword}`],
    ['sentinel', `down-after-milliseconds ${name} 1000`],
    ['sentinel', `failover-timeout ${name} 5000`],
  ]
  return tlsRedis(port, options, await startSentinelServer(settings))
}

function tlsSettings({ authority, certificate }: TlsServerOptions): [name: string, value: string][] {
  return [
    ['tls-cert-file', certificate.certificateFile],
    ['tls-key-file', certificate.keyFile],
    ['tls-ca-cert-file', authority.caFile],
    ['tls-auth-clients', 'yes'],
    ['tls-replication', 'yes'],
  ]
}

function tlsRedis(port: number, { authority, certificate }: TlsServerOptions, server: EngineServer): TlsRedis {
  const tls = {
    ca: readFileSync(authority.caFile),
    cert: readFileSync(certificate.certificateFile),
    key: readFileSync(certificate.keyFile),
    servername: 'localhost',
  }
  return {
    port,
    connect: (options = {}) => new Redis({ ...options, host: 'localhost', port, tls }),
    kill: server.kill,
    stop: server.stop,
  }
}
