import { skipFor } from '../skip.js'
import type { StartedEngine } from './own-engine.js'

const TO_RUN_THEM = 'run scripts/set-up-engines.sh (as root on Debian, or with Docker), or set MONGODB_URL and REDIS_URL'
const START_TIMEOUT_MS = 90_000

/** This machine has no engine, so the tests are skipped. Any other error in a `before` hook fails them. */
export class NoEngine extends Error {
  override readonly name = 'NoEngine'
}

/** Returns what the first attempt that does not throw `NoEngine` returns. If all of them throw it, so does this function. */
export async function firstAvailable<Engine>(...attempts: readonly (() => Promise<Engine>)[]): Promise<Engine> {
  const reasons: string[] = []
  for (const attempt of attempts) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof NoEngine)) throw error
      reasons.push(error.message)
    }
  }
  throw new NoEngine(reasons.join('; '))
}

/** Gives a hook or test more time to start an engine. Skips its tests if there is none. */
export async function withEngine<Engine>(context: Mocha.Context, start: () => Promise<Engine>, toRunThem = TO_RUN_THEM): Promise<Engine> {
  const limitMs = context.timeout()
  if (limitMs > 0) context.timeout(limitMs + START_TIMEOUT_MS)
  try {
    return await start()
  } catch (error) {
    if (error instanceof NoEngine) skipFor(context, error.message, toRunThem)
    throw error
  }
}

/**
 * Finds the server that the whole test run shares: the one that the environment variable names, or a new one. Each engine is tried
 * once per run, so that all suites get the same outcome.
 */
export function shareServer(
  variable: string,
  ping: (url: string) => Promise<void>,
  start: () => Promise<StartedEngine>,
): () => Promise<string> {
  const find = async () => {
    const configured = process.env[variable]
    if (!configured) {
      const { url, description } = await start()
      console.error(`Engine of the tests: ${description}`)
      return url
    }
    await ping(configured).catch((cause: unknown) => {
      throw new Error(`The server of ${variable} does not respond`, { cause })
    })
    return configured
  }
  let server: Promise<string> | undefined
  return () => (server ??= find())
}
