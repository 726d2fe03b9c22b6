import { Redis } from 'ioredis'
import type { OwnEngine } from './engines/own-engine.js'
import { anOwnRedis } from './engines/redis-engine.js'
import { until } from './until.js'

/** A Redis Cluster of three nodes on this machine, without replicas of them. */
export interface RedisCluster {
  readonly nodes: readonly OwnEngine[]
  /** `redis+cluster://…` */
  readonly url: string
  /** Which node has the slot of this name. */
  parseNode(name: string): Promise<OwnEngine>
  /** What one of its nodes says to a command. */
  ask(node: OwnEngine, ...command: [name: string, ...args: string[]]): Promise<unknown>
  stop(): Promise<void>
}

const SLOTS = [
  [0, 5460],
  [5461, 10_922],
  [10_923, 16_383],
] as const

/** For a `before` hook, as `anOwnRedis`. */
export async function aRedisCluster(context: Mocha.Context, extraArgs: readonly string[] = []): Promise<RedisCluster> {
  const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', ...extraArgs]
  const nodes: OwnEngine[] = []
  while (nodes.length < SLOTS.length) nodes.push(await anOwnRedis(context, args))
  for (const [index, node] of nodes.entries()) {
    await askNode(node, 'CLUSTER', 'ADDSLOTSRANGE', ...(SLOTS[index] ?? []).map(String))
    for (const other of nodes) await askNode(node, 'CLUSTER', 'MEET', new URL(other.url).hostname, new URL(other.url).port)
  }
  const isWhole = async (node: OwnEngine) => {
    const info = String(await askNode(node, 'CLUSTER', 'INFO'))
    return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3')
  }
  for (const node of nodes) await until('the cluster is whole', () => isWhole(node), 30_000)
  return {
    nodes,
    url: `redis+cluster://${nodes.map(({ url }) => new URL(url).host).join(',')}`,
    async parseNode(name) {
      const [first] = nodes
      if (!first) throw new Error('No node')
      const slot = Number(await askNode(first, 'CLUSTER', 'KEYSLOT', name))
      const index = SLOTS.findIndex(([from, to]) => from <= slot && slot <= to)
      return nodes[index] ?? first
    },
    ask: askNode,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()))
    },
  }
}

async function askNode(node: OwnEngine, ...[name, ...args]: [name: string, ...args: string[]]): Promise<unknown> {
  const client = new Redis(node.url)
  try {
    return await client.call(name, ...args)
  } finally {
    client.disconnect()
  }
}
