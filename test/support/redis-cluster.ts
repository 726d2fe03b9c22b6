import { Redis } from 'ioredis'
import type { OwnEngine } from './engines/own-engine.js'
import { anOwnRedis } from './engines/redis-engine.js'
import { until } from './until.js'

/** A Redis Cluster of three nodes on this machine. */
export interface RedisCluster {
  /** The nodes with slots when the cluster started. */
  readonly nodes: readonly OwnEngine[]
  /** `redis+cluster://…` */
  readonly url: string
  /** The node with the slot of this key. */
  findNode(name: string): Promise<OwnEngine>
  /** Sends a command to a node. */
  send(node: OwnEngine, ...command: [name: string, ...args: string[]]): Promise<unknown>
  stop(): Promise<void>
}

/** `replicas[i]` is the replica of `nodes[i]`. */
export interface RedisClusterWithReplicas extends RedisCluster {
  readonly replicas: readonly OwnEngine[]
}

const SLOTS = [
  [0, 5460],
  [5461, 10_922],
  [10_923, 16_383],
] as const

/** For a `before` hook, like `anOwnRedis`. */
export async function aRedisCluster(context: Mocha.Context, extraArgs: readonly string[] = []): Promise<RedisCluster> {
  const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', ...extraArgs]
  const nodes: OwnEngine[] = []
  while (nodes.length < SLOTS.length) nodes.push(await anOwnRedis(context, args))
  for (const [index, node] of nodes.entries()) {
    await sendToNode(node, 'CLUSTER', 'ADDSLOTSRANGE', ...(SLOTS[index] ?? []).map(String))
    for (const other of nodes) await meet(node, other)
  }
  const isWhole = async (node: OwnEngine) => {
    const info = String(await sendToNode(node, 'CLUSTER', 'INFO'))
    return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3')
  }
  for (const node of nodes) await until('the cluster is whole', () => isWhole(node), 30_000)
  return {
    nodes,
    url: `redis+cluster://${nodes.map(({ url }) => new URL(url).host).join(',')}`,
    async findNode(name) {
      const [first] = nodes
      if (!first) throw new Error('No node')
      const slot = Number(await sendToNode(first, 'CLUSTER', 'KEYSLOT', name))
      const index = SLOTS.findIndex(([from, to]) => from <= slot && slot <= to)
      return nodes[index] ?? first
    },
    send: sendToNode,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()))
    },
  }
}

/** Like `aRedisCluster`, with one replica per node, which takes over if its node fails for a second. */
export async function aRedisClusterWithReplicas(context: Mocha.Context): Promise<RedisClusterWithReplicas> {
  // Keys of other nodes stay available. A replica connects to its node at once, not after 5 s.
  const args = ['--cluster-require-full-coverage', 'no', '--cluster-node-timeout', '1000', '--repl-diskless-sync-delay', '0']
  const cluster = await aRedisCluster(context, args)
  const replicas: OwnEngine[] = []
  for (const node of cluster.nodes) {
    const replica = await anOwnRedis(context, ['--cluster-enabled', 'yes', ...args])
    replicas.push(replica)
    await meet(replica, node)
    const id = String(await sendToNode(node, 'CLUSTER', 'MYID'))
    await until('the replica knows its node', async () => String(await sendToNode(replica, 'CLUSTER', 'NODES')).includes(id), 30_000)
    await sendToNode(replica, 'CLUSTER', 'REPLICATE', id)
  }
  const { length } = [...cluster.nodes, ...replicas]
  const isWhole = async (node: OwnEngine) => {
    const lines = String(await sendToNode(node, 'CLUSTER', 'NODES')).split('\n')
    return (
      lines.filter((line) => line.includes(' connected')).length === length &&
      lines.filter((line) => / (myself,)?slave /.test(line)).length === replicas.length
    )
  }
  for (const node of [...cluster.nodes, ...replicas]) await until('every node knows all others', () => isWhole(node), 30_000)
  for (const replica of replicas) {
    const isInSync = async () => String(await sendToNode(replica, 'INFO', 'replication')).includes('master_link_status:up')
    await until('every replica is in sync', isInSync, 30_000)
  }
  return {
    ...cluster,
    replicas,
    async stop() {
      await Promise.all([cluster.stop(), ...replicas.map((replica) => replica.stop())])
    },
  }
}

async function meet(node: OwnEngine, other: OwnEngine): Promise<void> {
  const { hostname, port } = new URL(other.url)
  await sendToNode(node, 'CLUSTER', 'MEET', hostname, port)
}

async function sendToNode(node: OwnEngine, ...[name, ...args]: [name: string, ...args: string[]]): Promise<unknown> {
  const client = new Redis(node.url)
  try {
    return await client.call(name, ...args)
  } finally {
    client.disconnect()
  }
}
