import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { cleanUpAtEnd } from './engines/cleanup.js'

/** Compiled into the folder of this file. */
const UNION_SERVER = fileURLToPath(new URL('union-server.js', import.meta.url))

/** The control of the experiment: processes that use the stock limiter on one Redis. */
export interface UnionReplicas {
  readonly urls: readonly string[]
  dayUsed(key: string): Promise<number>
  stop(): Promise<void>
}

export async function startUnionReplicas(count: number, redisUrl: string): Promise<UnionReplicas> {
  const servers = await Promise.all(Array.from({ length: count }, () => startUnionServer(redisUrl)))
  return {
    urls: servers.map(({ url }) => url),
    async dayUsed(key) {
      const response = await fetch(`${servers[0]?.url}/usage`, { headers: { authorization: `Bearer ${key}` } })
      return ((await response.json()) as { dayUsed: number }).dayUsed
    },
    async stop() {
      await Promise.all(servers.map((server) => server.stop()))
    },
  }
}

async function startUnionServer(redisUrl: string) {
  const child = spawn(process.execPath, [UNION_SERVER, redisUrl], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child, 'spawn')
  const exit = once(child, 'exit')
  const stop = cleanUpAtEnd(async () => {
    child.kill('SIGKILL')
    await exit
  })
  const ended = exit.then(() => Promise.reject(new Error('The server of the control ended at once')))
  const [url] = (await Promise.race([once(createInterface(child.stdout), 'line'), ended])) as [string]
  return { url, stop }
}
