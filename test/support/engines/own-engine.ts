import { until } from '../until.js'

/** A server of a suite's own. Each step may be called in any state; what is done already is not done again. */
export interface OwnEngine {
  /** Stays the same when the server is killed and started again. */
  readonly url: string
  /** What it is, for people. */
  readonly how: string
  /** It keeps its connections and answers nothing. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** At once, as by SIGKILL; its data stay. */
  kill(): Promise<void>
  /** After a kill or a freeze; resolves when it answers. */
  start(): Promise<void>
  /** For good, with its data: it cannot be started again. */
  stop(): Promise<void>
}

/** What a running server can have done to it, be it a process or a container. */
export interface EngineBody {
  freeze(): Promise<void>
  thaw(): Promise<void>
  kill(): Promise<void>
  startAgain(): Promise<void>
  remove(): Promise<void>
}

export interface StartedEngine {
  readonly url: string
  readonly how: string
  readonly body: EngineBody
}

const ANSWERS_WITHIN_MS = 60_000

export function ownEngine({ url, how, body }: StartedEngine, ping: (url: string) => Promise<void>): OwnEngine {
  let state: 'running' | 'frozen' | 'killed' | 'stopped' = 'running'
  return {
    url,
    how,
    async freeze() {
      if (state !== 'running') return
      await body.freeze()
      state = 'frozen'
    },
    async thaw() {
      if (state !== 'frozen') return
      await body.thaw()
      state = 'running'
    },
    async kill() {
      if (state === 'killed' || state === 'stopped') return
      await body.kill()
      state = 'killed'
    },
    async start() {
      if (state === 'stopped') throw new Error(`This engine was stopped for good: ${how} at ${url}`)
      if (state === 'frozen') await body.thaw()
      if (state === 'killed') await body.startAgain()
      state = 'running'
      await untilItAnswers(url, ping)
    },
    async stop() {
      if (state === 'stopped') return
      state = 'stopped'
      await body.remove()
    },
  }
}

export async function untilItAnswers(url: string, ping: (url: string) => Promise<void>): Promise<void> {
  let lastFailure: unknown
  const answers = async () => {
    try {
      await ping(url)
      return true
    } catch (error) {
      lastFailure = error
      return false
    }
  }
  try {
    await until(`${url} answers`, answers, ANSWERS_WITHIN_MS)
  } catch (error) {
    throw new Error(`It does not answer: ${String(lastFailure)}`, { cause: error })
  }
}
