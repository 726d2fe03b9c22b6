import { setTimeout as sleep } from 'node:timers/promises'
import pTimeout from 'p-timeout'

/** Checks every 10 ms and resolves when the condition is true. Rejects after `withinMs`. */
export async function until(description: string, check: () => boolean | Promise<boolean>, withinMs = 5_000): Promise<void> {
  const endMs = performance.now() + withinMs
  while (!(await check())) {
    if (performance.now() > endMs) throw new Error(`Not within ${withinMs} ms: ${description}`)
    await sleep(10)
  }
}

/** Resolves to the outcome, or rejects after `withinMs`. */
export async function within<Outcome>(withinMs: number, description: string, outcome: Promise<Outcome>): Promise<Outcome> {
  return pTimeout(outcome, { milliseconds: withinMs, message: new Error(`Not within ${withinMs} ms: ${description}`) })
}
