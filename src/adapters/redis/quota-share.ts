import { mergeQuotaStates } from '../../core/merge-quota-states.js'
import type { QuotaRules, QuotaState } from '../../core/quota.js'
import { rollForward } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { mapWindows } from '../../core/window.js'

/**
 * Returns the state from which this replica, one of `replicas`, decides locally. Requests that it must not grant count as used.
 * `own` is the state that results from its local decisions, in this outage or an earlier one. `shared` is the last state that all replicas
 * shared. The share of a window is what was left of its limit, or the limit if the window is new, divided by `replicas` and rounded up.
 */
export function restrictToShare(
  { own, shared }: { readonly own: QuotaState | undefined; readonly shared: QuotaState | undefined },
  rules: QuotaRules,
  at: Instant,
  replicas: number,
): QuotaState {
  const { limits, ban } = rules
  const countOutsideShare = (left: number, limit: number) => limit - Math.ceil(left / replicas)
  const restricted = shared && {
    ...shared,
    used: mapWindows((name) => countOutsideShare(Math.max(0, limits[name] - shared.used[name]), limits[name])),
  }
  const known = own && restricted ? mergeQuotaStates(own, restricted) : (own ?? restricted)
  const state = rollForward(known, ban, at)
  const isKnown = mapWindows((name) => known?.window[name] === state.window[name])
  return { ...state, used: mapWindows((name) => (isKnown[name] ? state.used[name] : countOutsideShare(limits[name], limits[name]))) }
}
