import { StoreUnavailable } from './core/errors.js'

/** The exit codes of every command. `usage`: invalid usage or settings. */
export const EXIT_CODES = { success: 0, failure: 1, usage: 2 } as const

/** Returns one sentence for operators: the message and, for an outage, its cause. */
export function toOperatorMessage(error: Error): string {
  return error instanceof StoreUnavailable ? error.reason : error.message
}
