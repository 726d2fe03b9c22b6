import { constants } from 'node:os'
import { within } from '../until.js'

const CLEANUP_TIMEOUT_MS = 20_000

const cleanups = new Set<() => unknown>()
let isWatchingSignals = false
let exiting: Promise<void> | undefined

/**
 * Registers a cleanup for the end of the test run, which includes Ctrl-C and SIGTERM. Returns a function that runs it now instead.
 * After SIGKILL, no cleanup runs: `docker.ts` and `redis-process.ts` make sure that nothing is left behind.
 */
export function cleanUpAtEnd<Outcome>(cleanUp: () => Outcome): () => Outcome {
  watchSignals()
  cleanups.add(cleanUp)
  return () => {
    cleanups.delete(cleanUp)
    return cleanUp()
  }
}

export async function cleanUpNow(): Promise<void> {
  while (cleanups.size > 0) {
    const pending = [...cleanups]
    cleanups.clear()
    const outcomes = await Promise.allSettled(pending.map(async (cleanUp) => cleanUp()))
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') console.error(`Could not remove something that the tests started: ${outcome.reason}`)
    }
  }
}

function watchSignals(): void {
  if (isWatchingSignals) return
  isWatchingSignals = true
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // If Ctrl-C is pressed again, the handler is still registered, and the cleanup continues.
    process.on(signal, () => {
      exiting ??= within(CLEANUP_TIMEOUT_MS, 'clean up after the tests', cleanUpNow())
        .catch((error: unknown) => console.error(String(error)))
        .finally(() => process.exit(128 + constants.signals[signal]))
    })
  }
}
