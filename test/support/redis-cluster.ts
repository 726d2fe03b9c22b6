import { Redis } from 'ioredis'
import type { OwnEngine } from './engines/own-engine.js'
import { anOwnRedis } from './engines/redis-engine.js'
import { until } from './until.js'

/** A Redis Cluster of three nodes on this machine, without replicas. */
export interface RedisCluster {
  readonly nodes: readonly OwnEngine[]
  /** `redis+cluster://…` */
  readonly url: string
  /** The node with the slot of this key. */
  findNode(name: string): Promise<OwnEngine>
  /** Sends a command to a node. */
  send(node: OwnEngine, ...command: [name: string, ...args: string[]]): Promise<unknown>
  stop(): Promise<void>
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
    for (const other of nodes) await sendToNode(node, 'CLUSTER', 'MEET', new URL(other.url).hostname, new URL(other.url).port)
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

async function sendToNode(node: OwnEngine, ...[name, ...args]: [name: string, ...args: string[]]): Promise<unknown> {
  const client = new Redis(node.url)
  try {
    return await client.call(name, ...args)
  } finally {
    client.disconnect()
  }
}
