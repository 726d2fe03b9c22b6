import type { QuotaState } from './quota.js'
import { mapWindows } from './window.js'

/**
 * Combines what two replicas, or a replica and the store, know of a key: in each window, the later one and its higher usage, and the ban that
 * ends later. A ban that one side knows to be lifted is dropped. The result does not depend on the order, and merging a state again changes
 * nothing.
 */
export function mergeQuotaStates(one: QuotaState, other: QuotaState): QuotaState {
  const both = [one, other]
  const window = mapWindows((name) => Math.max(one.window[name], other.window[name]))
  const withLatest = <State extends QuotaState>(states: readonly State[], field: 'unbannedAtMs' | 'bannedUntilMs') => {
    const latestMs = Math.max(...states.map((state) => state[field]))
    return states.filter((state) => state[field] === latestMs)
  }
  // A ban begins and ends a count of strikes, so strikes count only together with the latest ban.
  const valid = withLatest(withLatest(both, 'unbannedAtMs'), 'bannedUntilMs')
  const striking = valid.filter((state) => state.window.minute === window.minute)
  const firstRejectionMs = Math.min(...striking.map((state) => state.firstRejectionMs ?? Number.POSITIVE_INFINITY))
  const used = mapWindows((name) =>
    Math.max(...both.filter((state) => state.window[name] === window[name]).map((state) => state.used[name])),
  )
  return {
    window,
    used,
    strikes: Math.max(0, ...striking.map(({ strikes }) => strikes)),
    ...(Number.isFinite(firstRejectionMs) ? { firstRejectionMs } : {}),
    bannedUntilMs: Math.max(...valid.map(({ bannedUntilMs }) => bannedUntilMs)),
    banLevel: Math.max(...valid.map(({ banLevel }) => banLevel)),
    unbannedAtMs: Math.max(one.unbannedAtMs, other.unbannedAtMs),
    keyVersion: Math.max(one.keyVersion, other.keyVersion),
  }
}
