import type { QuotaRules, QuotaState } from './quota.js'
import { rollForward } from './quota.js'
import type { Instant, WindowName } from './window.js'

/**
 * For a replica that has to decide without the others: the state in which it does. Of each window that `stored` does not know
 * it may give out one part in `replicas`, rounded up; the rest counts as used.
 */
export function openShare(stored: QuotaState | undefined, rules: QuotaRules, at: Instant, replicas: number): QuotaState {
  const state = rollForward(stored, rules.ban, at)
  const used = (name: WindowName) =>
    stored?.window[name] === state.window[name] ? state.used[name] : usageLeavingShare(rules.limits[name], rules.limits[name], replicas)
  return { ...state, used: { minute: used('minute'), day: used('day') } }
}

/** What was last known of a key that all replicas shared, of which this one may give out one part of what was left. */
export function shareOfKnown(known: QuotaState, { limits }: QuotaRules, replicas: number): QuotaState {
  const used = (name: WindowName) => usageLeavingShare(limits[name], Math.max(0, limits[name] - known.used[name]), replicas)
  return { ...known, used: { minute: used('minute'), day: used('day') } }
}

/** What was decided here in an earlier outage or in this one, with what all replicas have decided since: a share is given out once. */
export function mergeStricter(own: QuotaState, shared: QuotaState): QuotaState {
  const newer = own.window.minute < shared.window.minute ? shared : own
  const used = (name: WindowName) =>
    own.window[name] === shared.window[name] ? Math.max(own.used[name], shared.used[name]) : newer.used[name]
  const { bannedUntilMs, banLevel } = own.bannedUntilMs < shared.bannedUntilMs ? shared : own
  const version = Math.max(own.version, shared.version)
  return { ...newer, used: { minute: used('minute'), day: used('day') }, bannedUntilMs, banLevel, version }
}

function usageLeavingShare(limit: number, left: number, replicas: number): number {
  return limit - Math.ceil(left / replicas)
}
