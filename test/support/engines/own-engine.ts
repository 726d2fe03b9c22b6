import { until } from '../until.js'

/** A server that belongs to one suite. Every method may be called in every state, also twice. */
export interface OwnEngine {
  /** Stays the same when the server is killed and started again. */
  readonly url: string
  /** The server keeps its connections and does not respond. */
  freeze(): Promise<void>
  unfreeze(): Promise<void>
  /** Ends the server like SIGKILL. It keeps its data. */
  kill(): Promise<void>
  /** Starts the server after a kill or a freeze. Resolves when it responds. */
  start(): Promise<void>
  /** Removes the server and its data. It cannot be started again. */
  stop(): Promise<void>
}

/** A container or process. Unlike those of `OwnEngine`, each method may be called only in the state that it changes. */
export type EngineServer = Omit<OwnEngine, 'url'>

export interface StartedEngine {
  readonly url: string
  /** For messages. */
  readonly description: string
  readonly server: EngineServer
}

const RESPONSE_TIMEOUT_MS = 60_000

export function toOwnEngine({ url, server }: StartedEngine, ping: (url: string) => Promise<void>): OwnEngine {
  let state: 'running' | 'frozen' | 'killed' | 'stopped' = 'running'
  return {
    url,
    async freeze() {
      if (state !== 'running') return
      await server.freeze()
      state = 'frozen'
    },
    async unfreeze() {
      if (state !== 'frozen') return
      await server.unfreeze()
      state = 'running'
    },
    async kill() {
      if (state === 'killed' || state === 'stopped') return
      await server.kill()
      state = 'killed'
    },
    async start() {
      if (state === 'stopped') throw new Error(`The engine at ${url} was stopped and cannot be started again`)
      if (state === 'frozen') await server.unfreeze()
      if (state === 'killed') await server.start()
      state = 'running'
      await untilItResponds(url, ping)
    },
    async stop() {
      if (state === 'stopped') return
      state = 'stopped'
      await server.stop()
    },
  }
}

export async function untilItResponds(url: string, ping: (url: string) => Promise<void>): Promise<void> {
  let lastError: unknown
  const responds = async () => {
    lastError = await ping(url).catch((error: unknown) => error)
    return lastError === undefined
  }
  await until(`${url} responds`, responds, RESPONSE_TIMEOUT_MS).catch(() => {
    throw new Error(`${url} does not respond: ${String(lastError)}`, { cause: lastError })
  })
}
