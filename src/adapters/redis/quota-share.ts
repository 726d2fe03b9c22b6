import type { QuotaRules, QuotaState } from '../../core/quota.js'
import { rollForward } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { mapWindows } from '../../core/window.js'

/**
 * The state from which one of `replicas` replicas decides by itself: what it must not grant counts as used.
 * `own` is what this replica decided in this outage or an earlier one, and `shared` the last state that all replicas shared.
 * The share of a window is the part of what was left in it, rounded up, or of the limit if the window is new.
 */
export function stateLeavingShare(
  { own, shared }: { readonly own: QuotaState | undefined; readonly shared: QuotaState | undefined },
  rules: QuotaRules,
  at: Instant,
  replicas: number,
): QuotaState {
  const { limits, ban } = rules
  const usedLeavingShareOf = (left: number, limit: number) => limit - Math.ceil(left / replicas)
  const granted = shared && {
    ...shared,
    used: mapWindows((name) => usedLeavingShareOf(Math.max(0, limits[name] - shared.used[name]), limits[name])),
  }
  const known = own && granted ? mergeStricter(own, granted) : (own ?? granted)
  const state = rollForward(known, ban, at)
  const isKnown = mapWindows((name) => known?.window[name] === state.window[name])
  return { ...state, used: mapWindows((name) => (isKnown[name] ? state.used[name] : usedLeavingShareOf(limits[name], limits[name]))) }
}

/** Of each window, the higher usage; of two bans, the one that ends later. */
function mergeStricter(own: QuotaState, shared: QuotaState): QuotaState {
  const newer = own.window.minute < shared.window.minute ? shared : own
  const { bannedUntilMs, banLevel } = own.bannedUntilMs < shared.bannedUntilMs ? shared : own
  return {
    ...newer,
    used: mapWindows((name) => (own.window[name] === shared.window[name] ? Math.max(own.used[name], shared.used[name]) : newer.used[name])),
    bannedUntilMs,
    banLevel,
    keyVersion: Math.max(own.keyVersion, shared.keyVersion),
  }
}
