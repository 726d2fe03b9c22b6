import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onFreePort } from './engines/free-port.js'
import { withEngine } from './engines/no-engine.js'
import type { EngineServer, OwnEngine } from './engines/own-engine.js'
import { withRedis } from './engines/redis-client.js'
import { anOwnRedis } from './engines/redis-engine.js'
import { startRedisServer } from './engines/redis-process.js'
import { until } from './until.js'

const PRIMARY_NAME = 'petstore'
const SENTINELS = 3
const QUORUM = 2
const DOWN_AFTER_MS = 500
const FAILOVER_TIMEOUT_MS = 5_000
/** A replica connects to its primary at once, not after 5 s. */
const SERVER_ARGS = ['--repl-diskless-sync-delay', '0']

/** A primary with replicas, monitored by three Sentinels. */
export interface RedisSentinelSet {
  /** `redis+sentinel://…` */
  readonly url: string
  /** The server that the Sentinels name as the primary. */
  findPrimary(): Promise<OwnEngine>
  /** Resolves when each Sentinel knows all servers, and each replica has the data of the primary. */
  untilReplicated(): Promise<void>
  /** Resolves when this server is a replica of the primary. */
  untilReplicating(server: OwnEngine): Promise<void>
  stop(): Promise<void>
}

/** For a `before` hook, like `anOwnRedis`. */
export async function aRedisSentinelSet(context: Mocha.Context, replicaCount: number): Promise<RedisSentinelSet> {
  const primary = await anOwnRedis(context, SERVER_ARGS)
  const { hostname, port } = new URL(primary.url)
  const servers = [primary]
  while (servers.length <= replicaCount) servers.push(await anOwnRedis(context, [...SERVER_ARGS, '--replicaof', hostname, port]))
  const sentinels: { readonly url: string; readonly server: EngineServer }[] = []
  while (sentinels.length < SENTINELS) {
    const start = async (ownPort: number) => ({
      url: `redis://127.0.0.1:${ownPort}`,
      server: await startSentinelServer([
        ['port', `${ownPort}`],
        ['bind', '127.0.0.1'],
        ['sentinel', `monitor ${PRIMARY_NAME} ${hostname} ${port} ${QUORUM}`],
        ['sentinel', `down-after-milliseconds ${PRIMARY_NAME} ${DOWN_AFTER_MS}`],
        ['sentinel', `failover-timeout ${PRIMARY_NAME} ${FAILOVER_TIMEOUT_MS}`],
      ]),
    })
    sentinels.push(await withEngine(context, () => onFreePort(start)))
  }

  const ask = (url: string, ...[name, ...args]: [string, ...string[]]) => withRedis(url, (client) => client.call(name, ...args))
  const knowsAll = async ({ url }: { url: string }) => {
    const [replicas, others] = [await ask(url, 'SENTINEL', 'REPLICAS', PRIMARY_NAME), await ask(url, 'SENTINEL', 'SENTINELS', PRIMARY_NAME)]
    const areUp = JSON.stringify(replicas).split('"master-link-status","ok"').length === replicaCount + 1
    return areUp && (others as unknown[]).length === SENTINELS - 1
  }
  const untilReplicated = async () => {
    for (const sentinel of sentinels) await until('each Sentinel knows all servers', () => knowsAll(sentinel), 40_000)
  }
  await untilReplicated()

  return {
    untilReplicated,
    url: `redis+sentinel://${sentinels.map(({ url }) => new URL(url).host).join(',')}/${PRIMARY_NAME}`,
    async findPrimary() {
      const [, primaryPort] = (await ask(sentinels[0]?.url ?? '', 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME)) as string[]
      const found = servers.find(({ url }) => new URL(url).port === primaryPort)
      if (!found) throw new Error(`The Sentinels name an unknown primary: ${primaryPort}`)
      return found
    },
    async untilReplicating({ url }) {
      const isReplicating = async () => {
        const info = await withRedis(url, (client) => client.info('replication')).catch(() => '')
        return info.includes('role:slave') && info.includes('master_link_status:up')
      }
      await until('the server is a replica', isReplicating, 40_000)
    },
    async stop() {
      await Promise.all([...sentinels.map(({ server }) => server.stop()), ...servers.map((server) => server.stop())])
    },
  }
}

/** Starts a Sentinel with these lines of its configuration file. */
export async function startSentinelServer(settings: readonly (readonly string[])[]): Promise<EngineServer> {
  const args = (folder: string) => {
    // Sentinel writes its state to its configuration file.
    const file = join(folder, 'sentinel.conf')
    writeFileSync(file, [['dir', folder], ...settings].map((setting) => `${setting.join(' ')}\n`).join(''))
    return [file, '--sentinel']
  }
  return startRedisServer(args, '+monitor master')
}
