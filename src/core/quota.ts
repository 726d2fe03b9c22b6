import type { Instant, WindowName, WindowNumbers } from './window.js'
import { mapWindows, WINDOWS, getWindowNumber, getWindowResetSeconds } from './window.js'

/**
 * Decides requests. Pure: the same state, rules and instant always give the same verdict.
 *
 * All windows are checked first, then all are charged or none. A rejected request costs nothing; it can only add a strike.
 */

/** The highest limit: quota headers are declared as int32. */
export const MAX_LIMIT = 2_147_483_647

/** Requests per window, each 1 to `MAX_LIMIT`. */
export type Limits = Readonly<Record<WindowName, number>>

export interface BanRules {
  /** The grace period. A rejection is a strike only if it occurs later than this after the first rejection of the minute. */
  readonly graceMs: number
  /** A key is banned at this number of strikes in one minute, or at its minute limit if that is higher. */
  readonly minStrikes: number
  /** The first ban. Each further ban lasts twice as long. */
  readonly firstMs: number
  readonly longestMs: number
  /** If a key is not banned for this long after a ban ends, its next ban is a first ban again. */
  readonly forgetAfterMs: number
}

export interface QuotaRules {
  readonly limits: Limits
  readonly ban: BanRules
  /** `shadow` counts strikes and bans but admits every request. */
  readonly mode: 'enforce' | 'shadow'
}

export interface QuotaState {
  readonly window: WindowNumbers
  /** Requests charged in these windows, 0 or more. */
  readonly used: Readonly<Record<WindowName, number>>
  /** Strikes in the current minute. */
  readonly strikes: number
  /** Unix time in milliseconds of the first rejection in the current minute. */
  readonly firstRejectionMs?: number
  /** Unix time in milliseconds at which the latest ban ends, 0 before the first ban. */
  readonly bannedUntilMs: number
  /** Number of bans in a row, 0 once they are forgotten. */
  readonly banLevel: number
  /** Unix time in milliseconds at which an operator last lifted a ban, 0 if never. A ban that was known before then no longer applies. */
  readonly unbannedAtMs: number
  /** The version of the key's record in the last decision, or the announced version if that is higher. 0 if no version is known. */
  readonly keyVersion: number
}

/** The version of the key's record that a decision is based on. */
export interface KeyVersion {
  readonly version: number
  /** The record was read from its store after this version was known. It applies unless a higher version is known. */
  readonly readSince?: number
}

/** Usage that a replica reports: what it granted locally, or a refund. Usage in windows that have ended is ignored. */
export interface UsageDelta {
  readonly window: WindowNumbers
  /** Rejections in this minute that were strikes, 0 or more. */
  readonly strikes: number
  /** Requests charged minus requests refunded. */
  readonly used: Readonly<Record<WindowName, number>>
}

export interface WindowQuota {
  /** Requests per window, 1 to `MAX_LIMIT`. */
  readonly limit: number
  /** Requests left, 0 to `limit`. */
  readonly remaining: number
  /** Unix time in whole seconds at which the window ends. */
  readonly resetSeconds: number
}

/** The caller's quota as responses report it. */
export interface Quota extends Readonly<Record<WindowName, WindowQuota>> {
  /** Unix time in milliseconds, by the clock that decided. */
  readonly nowMs: number
  /** The window with the fewest requests left (on a tie, the day). For a rejected request, describes what the caller has to wait for. */
  readonly binding: WindowQuota
}

/** The usage of a key as its owner and operators see it. */
export interface QuotaUsage {
  /** As the headers of responses report it. */
  readonly quota: Quota
  /** The windows with their actual ends and the requests charged, which may exceed the limit. During a ban, no requests remain. */
  readonly windows: Readonly<Record<WindowName, WindowQuota & { readonly used: number }>>
  /** Strikes in the current minute. */
  readonly strikes: number
  /** Unix time in milliseconds at which the ban ends. Absent if the key is not banned. */
  readonly bannedUntilMs?: number
  /** Number of bans in a row, 0 once they are forgotten. */
  readonly banLevel: number
}

/** The numbers of the windows in which one request was counted. A refund needs them. */
export type Charge = WindowNumbers

export interface Rejection {
  readonly kind: 'exhausted' | 'banned'
  readonly quota: Quota
  /** The window that has to end before the next request is admitted. Absent if the end of the ban comes later. */
  readonly window?: WindowName
  /** Whole seconds, 1 or more. If nothing else uses the key, a request after this time is admitted, and one a second earlier is not. */
  readonly retryAfterSeconds: number
}

export type Verdict =
  | { readonly kind: 'admitted'; readonly quota: Quota; readonly charge: Charge }
  /** Admitted by shadow mode and not charged. Enforcement would have rejected the request. */
  | { readonly kind: 'admitted'; readonly quota: Quota; readonly shadowed: Rejection['kind'] }
  | Rejection

export interface Decision {
  readonly verdict: Verdict
  readonly state: QuotaState
}

/** How long a state remembers that a ban was lifted, in case a replica that has not noticed reports the ban after that. */
export const UNBAN_KEPT_MS = 86_400_000

/** Unix time in milliseconds from which the state is equivalent to no state. */
export function expiresAtMs(state: QuotaState, { forgetAfterMs }: Pick<BanRules, 'forgetAfterMs'>): number {
  // Ignores the phase of the minute, which gives a later time, so that a minute that spans midnight has ended as well.
  const windowEndsMs = Object.values(mapWindows((name) => (state.window[name] + 1) * WINDOWS[name].seconds * 1000))
  const banForgottenMs = state.banLevel > 0 ? state.bannedUntilMs + forgetAfterMs : 0
  return Math.max(...windowEndsMs, banForgottenMs, state.unbannedAtMs > 0 ? state.unbannedAtMs + UNBAN_KEPT_MS : 0)
}

/** Decides one request. `stored` is undefined for a key without a state. `delta` is counted before the decision. */
export function decide(stored: QuotaState | undefined, rules: QuotaRules, at: Instant, delta?: UsageDelta): Decision {
  const { charged, state } = transition(stored, rules, at, delta)
  return { verdict: toVerdict(state, rules, at, { charged }), state }
}

/** The part of a decision that a store has to make in one atomic step. */
function transition(
  stored: QuotaState | undefined,
  rules: QuotaRules,
  at: Instant,
  delta?: UsageDelta,
): { charged: boolean; state: QuotaState } {
  const state = delta ? reconcile(stored, rules, at, delta) : rollForward(stored, rules.ban, at)
  if (isBanned(state, at)) return { charged: false, state }
  if (listExhaustedWindows(state, rules.limits).length > 0) return { charged: false, state: addRejection(state, rules, at) }
  return { charged: true, state: { ...state, used: mapWindows((name) => state.used[name] + 1) } }
}

/** Returns the verdict on a request. `state` is the state after it. */
export function toVerdict(state: QuotaState, rules: QuotaRules, at: Instant, { charged }: { charged: boolean }): Verdict {
  return charged ? { kind: 'admitted', quota: toQuota(state, rules.limits, at), charge: state.window } : toRejection(state, rules, at)
}

/** Whether the caller's record of the key is older than one in an earlier decision or announcement. A stale record must not be used. */
export function isStale({ version, readSince = 0 }: KeyVersion, knownVersion: number): boolean {
  return Math.max(version, readSince) < knownVersion
}

/** Refunds one request, only in the windows in which it was charged, and never below zero. */
export function refund(
  stored: QuotaState | undefined,
  charge: Charge,
  rules: QuotaRules,
  at: Instant,
): { quota: Quota; state: QuotaState } {
  const state = reconcile(stored, rules, at, toRefundDelta(charge))
  return { quota: toUsage(state, rules, at).quota, state }
}

/** Returns a delta that subtracts one request in the windows of its charge. */
export function toRefundDelta(charge: Charge): UsageDelta {
  return { window: charge, strikes: 0, used: mapWindows(() => -1) }
}

/** Adds the usage and the strikes of a delta. Does not decide a request. */
export function reconcile(stored: QuotaState | undefined, rules: QuotaRules, at: Instant, delta: UsageDelta): QuotaState {
  const state = rollForward(stored, rules.ban, at)
  const isCurrent = (name: WindowName) => delta.window[name] === state.window[name]
  const used = mapWindows((name) => Math.max(0, state.used[name] + (isCurrent(name) ? delta.used[name] : 0)))
  // If a ban has been lifted in the meantime, the state has no first rejection, and earlier strikes must not count.
  const strikes = isCurrent('minute') && state.firstRejectionMs !== undefined && !isBanned(state, at) ? delta.strikes : 0
  return strikes > 0 ? addStrikes({ ...state, used }, strikes, rules, at) : { ...state, used }
}

/** Returns the usage of a key without changing it. */
export function toUsage(stored: QuotaState | undefined, rules: QuotaRules, at: Instant): QuotaUsage {
  const state = rollForward(stored, rules.ban, at)
  const { used, strikes, banLevel, bannedUntilMs } = state
  const current = toQuota(state, rules.limits, at)
  const quota = isBanned(state, at) ? toRejectedQuota(state, rules.limits, at).quota : current
  const windows = mapWindows((name) => ({ ...current[name], used: used[name], remaining: quota[name].remaining }))
  return { quota, windows, strikes, banLevel, ...(isBanned(state, at) ? { bannedUntilMs } : {}) }
}

/** Lifts the ban and forgets strikes and earlier bans. Usage stays. */
export function unban({ window, used, unbannedAtMs, keyVersion }: QuotaState, nowMs: number): QuotaState {
  // Increases even if the clock has stepped back.
  return { window, used, strikes: 0, bannedUntilMs: 0, banLevel: 0, unbannedAtMs: Math.max(nowMs, unbannedAtMs + 1), keyVersion }
}

/** Returns the state at this instant: the counts of ended windows are zero, and bans that ended long ago are forgotten. */
export function rollForward(stored: QuotaState | undefined, ban: BanRules, at: Instant): QuotaState {
  const window = mapWindows((name) => currentWindow(name, stored, at))
  if (!stored) return { window, used: mapWindows(() => 0), strikes: 0, bannedUntilMs: 0, banLevel: 0, unbannedAtMs: 0, keyVersion: 0 }

  const { firstRejectionMs, strikes, bannedUntilMs, banLevel, unbannedAtMs, keyVersion } = stored
  const isSameMinute = stored.window.minute === window.minute
  return {
    window,
    used: mapWindows((name) => (stored.window[name] === window[name] ? stored.used[name] : 0)),
    strikes: isSameMinute ? strikes : 0,
    ...(isSameMinute && firstRejectionMs !== undefined ? { firstRejectionMs } : {}),
    bannedUntilMs,
    banLevel: at.nowMs < bannedUntilMs + ban.forgetAfterMs ? banLevel : 0,
    unbannedAtMs,
    keyVersion,
  }
}

/** If the clock steps back, as in a failover, a window that was used must not start again. */
function currentWindow(name: WindowName, stored: QuotaState | undefined, at: Instant): number {
  const byClock = getWindowNumber(name, at)
  const known = stored?.window[name] ?? byClock
  return known > byClock && known <= byClock + WINDOWS[name].keptAhead ? known : byClock
}

/** Lists the day first, because on a tie it is the window to report. */
function listExhaustedWindows(state: QuotaState, limits: Limits): WindowName[] {
  return (['day', 'minute'] as const).filter((name) => state.used[name] >= limits[name])
}

/** Requests that were in flight when the limit was reached must not be strikes, so a grace period follows the first rejection. */
function addRejection(state: QuotaState, rules: QuotaRules, at: Instant): QuotaState {
  if (state.firstRejectionMs === undefined) return { ...state, firstRejectionMs: at.nowMs }
  if (at.nowMs - state.firstRejectionMs <= rules.ban.graceMs) return state
  return addStrikes(state, 1, rules, at)
}

function addStrikes(state: QuotaState, count: number, rules: QuotaRules, { nowMs }: Instant): QuotaState {
  const { ban } = rules
  const strikes = state.strikes + count
  if (strikes < countStrikesToBan(rules)) return { ...state, strikes }
  const banMs = Math.min(ban.firstMs * 2 ** state.banLevel, ban.longestMs)
  const { window, used, unbannedAtMs, keyVersion } = state
  return { window, used, strikes: 0, bannedUntilMs: nowMs + banMs, banLevel: state.banLevel + 1, unbannedAtMs, keyVersion }
}

/** Returns the number of strikes in one minute at which a key is banned. */
export function countStrikesToBan({ ban, limits }: Pick<QuotaRules, 'ban' | 'limits'>): number {
  return Math.max(ban.minStrikes, limits.minute)
}

export function isBanned(state: QuotaState, { nowMs }: Pick<Instant, 'nowMs'>): boolean {
  return nowMs < state.bannedUntilMs
}

/** Whether a decision that led from the state `before` to the state `after` has started a ban. */
export function hasStartedBan(before: QuotaState | undefined, after: QuotaState): boolean {
  return after.bannedUntilMs > (before?.bannedUntilMs ?? 0)
}

function toRejection(state: QuotaState, { limits, mode }: QuotaRules, at: Instant): Verdict {
  const kind = isBanned(state, at) ? 'banned' : 'exhausted'
  const { quota, admittedAgainMs, window } = toRejectedQuota(state, limits, at)
  if (mode === 'shadow') return { kind: 'admitted', quota, shadowed: kind }
  return { kind, quota, retryAfterSeconds: Math.ceil((admittedAgainMs - at.nowMs) / 1000), ...(window ? { window } : {}) }
}

/** Requests are admitted again once the ban and every exhausted window have ended. `window` is the one that ends last, if it outlasts the ban. */
function toRejectedQuota(
  state: QuotaState,
  limits: Limits,
  at: Instant,
): { quota: Quota; admittedAgainMs: number; window: WindowName | undefined } {
  const banEndsMs = isBanned(state, at) ? state.bannedUntilMs : 0
  const [last] = listExhaustedWindows(state, limits)
    .map((name) => ({ name, resetMs: getWindowResetSeconds(name, state.window[name], at) * 1000 }))
    .toSorted((a, b) => b.resetMs - a.resetMs)
  const admittedAgainMs = Math.max(banEndsMs, last?.resetMs ?? 0)
  const window = last?.resetMs === admittedAgainMs ? last.name : undefined

  const binding = { limit: limits[window ?? 'minute'], remaining: 0, resetSeconds: Math.ceil(admittedAgainMs / 1000) }
  // During a ban, 0 requests remain in both windows, regardless of usage.
  const windows = banEndsMs > 0 ? mapWindows((name) => ({ ...binding, limit: limits[name] })) : toQuota(state, limits, at)
  return { quota: { nowMs: at.nowMs, minute: windows.minute, day: windows.day, binding }, admittedAgainMs, window }
}

function toQuota(state: QuotaState, limits: Limits, at: Instant): Quota {
  const { minute, day } = mapWindows<WindowQuota>((name) => ({
    limit: limits[name],
    remaining: Math.max(0, limits[name] - state.used[name]),
    resetSeconds: getWindowResetSeconds(name, state.window[name], at),
  }))
  return { nowMs: at.nowMs, minute, day, binding: minute.remaining < day.remaining ? minute : day }
}
