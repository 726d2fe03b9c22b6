import type { Instant, WindowName, WindowNumbers } from './window.js'
import { WINDOW_NAMES, WINDOW_SECONDS, windowNumber, windowResetSeconds } from './window.js'

/**
 * How a request is decided. Pure: the same state, rules and instant always give the same verdict.
 *
 * All windows are checked first, then all are charged or none. A refused request costs nothing; it can only add a strike.
 * Windows are fixed: the day starts at 00:00 UTC, the minute has a phase per key.
 */

/** The highest limit: quota headers are declared as int32. */
export const MAX_LIMIT = 2_147_483_647

/** Requests per window, each 1 to `MAX_LIMIT`. */
export type Limits = Readonly<Record<WindowName, number>>

export interface BanRules {
  /** A rejection counts as a strike only when it comes later than this after the minute's first rejection. */
  readonly graceMs: number
  /** Strikes in one minute that bring a ban: this many, or the minute limit where that is higher. */
  readonly minStrikes: number
  /** The first ban; each further one lasts twice as long. */
  readonly firstMs: number
  readonly longestMs: number
  /** This long after a ban's end without another, the next one is a first one again. */
  readonly forgetAfterMs: number
}

export interface QuotaRules {
  readonly limits: Limits
  readonly ban: BanRules
  readonly mode: 'enforce' | 'shadow'
}

export interface QuotaState {
  readonly window: WindowNumbers
  readonly used: Readonly<Record<WindowName, number>>
  /** Of the current minute. */
  readonly strikes: number
  /** Of the current minute. */
  readonly firstRejectionMs?: number
  /** End of the latest ban, 0 before the first. */
  readonly bannedUntilMs: number
  /** How many bans in a row, 0 when they are forgotten. */
  readonly banLevel: number
  /** The highest version of the key's record that decided here, 0 when none is known. */
  readonly version: number
}

/** Who asks, as far as the record that was read of the key goes. */
export interface KeyVersion {
  /** Of the key's record. */
  readonly version: number
  /** The record was read from its store for this very request: it holds, whatever version was seen here before. */
  readonly justRead?: boolean
}

/** What a replica decided by itself since it last asked, for windows by their number: what they have ended for is dropped. */
export interface UsageDelta {
  readonly window: WindowNumbers
  /** Rejections that were strikes. */
  readonly strikes: number
  /** Requests admitted, negative where more were given back. */
  readonly used: Readonly<Record<WindowName, number>>
}

export interface WindowQuota {
  readonly limit: number
  /** Requests left, 0 to `limit`. */
  readonly remaining: number
  /** Unix time in whole seconds. */
  readonly resetSeconds: number
}

/** What the caller has, as every answer reports it. */
export interface Quota extends Readonly<Record<WindowName, WindowQuota>> {
  /** The clock that decided, Unix time in milliseconds. */
  readonly nowMs: number
  /** The window that binds: the one with fewest requests left, or the one that a refused caller has to wait for. */
  readonly binding: WindowQuota
}

/** What operators are told of a key. */
export interface QuotaUsage {
  readonly quota: Quota
  /** Requests charged in the current windows. */
  readonly used: Readonly<Record<WindowName, number>>
  /** Of the current minute. */
  readonly strikes: number
  /** Unix time in milliseconds; absent when no ban holds. */
  readonly bannedUntilMs?: number
  /** Bans in a row, 0 when they are forgotten. */
  readonly banLevel: number
}

/** The windows that a request was charged to, for a refund. */
export type Charge = WindowNumbers

export interface Rejection {
  readonly kind: 'exhausted' | 'banned'
  readonly quota: Quota
  /** The window that has to end before the caller is served again; absent when it is the ban that has to. */
  readonly window?: WindowName
  /** Whole seconds, 1 or more. Waiting this long, alone, is enough; one second less is not. */
  readonly retryAfterSeconds: number
}

export type Verdict =
  | { readonly kind: 'admitted'; readonly quota: Quota; readonly charge: Charge }
  /** Shadow mode let pass, uncharged, what enforcement would have refused. */
  | { readonly kind: 'admitted'; readonly quota: Quota; readonly shadowed: Rejection['kind'] }
  | Rejection

export interface Decision {
  readonly verdict: Verdict
  readonly state: QuotaState
}

/** From this Unix time in milliseconds on, the state says nothing that a missing one would not. */
export function expiresAtMs(state: QuotaState, { forgetAfterMs }: Pick<BanRules, 'forgetAfterMs'>): number {
  const dayEndMs = (state.window.day + 1) * WINDOW_SECONDS.day * 1000
  // A minute may reach over midnight by its phase.
  const minuteEndMs = (state.window.minute + 1) * WINDOW_SECONDS.minute * 1000
  return Math.max(dayEndMs, minuteEndMs, state.banLevel > 0 ? state.bannedUntilMs + forgetAfterMs : 0)
}

/**
 * Decides one request. `stored` is absent for a key that was never seen, or was forgotten.
 * What a replica reports counts as if it had happened just before.
 */
export function decide(stored: QuotaState | undefined, rules: QuotaRules, at: Instant, report?: UsageDelta): Decision {
  const { charged, state } = transition(stored, rules, at, report)
  return { verdict: toVerdict(state, rules, at, { charged }), state }
}

/** The state after a request: what a store has to do in one atomic step. What the caller is told follows from it. */
function transition(
  stored: QuotaState | undefined,
  rules: QuotaRules,
  at: Instant,
  report?: UsageDelta,
): { charged: boolean; state: QuotaState } {
  const state = report ? reconcile(stored, rules, at, report) : rollForward(stored, rules.ban, at)
  if (isBanned(state, at)) return { charged: false, state }
  if (exhaustedWindows(state, rules.limits).length > 0) return { charged: false, state: addRejection(state, rules, at) }
  return { charged: true, state: { ...state, used: { minute: state.used.minute + 1, day: state.used.day + 1 } } }
}

/** What the caller of a request is told, from the state after it. */
export function toVerdict(state: QuotaState, rules: QuotaRules, at: Instant, { charged }: { charged: boolean }): Verdict {
  return charged ? { kind: 'admitted', quota: toQuota(state, rules.limits, at), charge: state.window } : rejection(state, rules, at)
}

/** Whether the asker's record of the key is older than one that decided before, or was announced: then nothing is to be decided by it. */
export function isOutdated(stored: QuotaState | undefined, { version, justRead }: KeyVersion, announced = 0): boolean {
  return !justRead && version < Math.max(stored?.version ?? 0, announced)
}

/** Gives back one request, in the windows that it was charged to only, and never below zero. */
export function refund(
  stored: QuotaState | undefined,
  charge: Charge,
  rules: QuotaRules,
  at: Instant,
): { quota: Quota; state: QuotaState } {
  const state = reconcile(stored, rules, at, { window: charge, strikes: 0, used: { minute: -1, day: -1 } })
  return { quota: quotaNow(state, rules, at), state }
}

/** Adds what a replica decided by itself; nothing is asked for. */
export function reconcile(stored: QuotaState | undefined, rules: QuotaRules, at: Instant, report: UsageDelta): QuotaState {
  return addReport(rollForward(stored, rules.ban, at), report, rules, at)
}

/** What a key has and had, when nothing is asked for. `stored` as for `decide`. */
export function toUsage(stored: QuotaState | undefined, rules: QuotaRules, at: Instant): QuotaUsage {
  const state = rollForward(stored, rules.ban, at)
  const { used, strikes, banLevel, bannedUntilMs } = state
  return { quota: quotaNow(state, rules, at), used, strikes, banLevel, ...(isBanned(state, at) ? { bannedUntilMs } : {}) }
}

/** The state without its ban, its strikes, and what earlier bans would make of the next. Counts stay. */
export function unban({ window, used, version }: QuotaState): QuotaState {
  return { window, used, strikes: 0, bannedUntilMs: 0, banLevel: 0, version }
}

function quotaNow(state: QuotaState, { limits }: QuotaRules, at: Instant): Quota {
  return isBanned(state, at) ? quotaOfRefused(state, limits, at).quota : toQuota(state, limits, at)
}

/** The state as of now: counts of windows that have passed are zero, and a ban long past is forgotten. */
export function rollForward(stored: QuotaState | undefined, ban: BanRules, at: Instant): QuotaState {
  const window = { minute: currentWindow('minute', stored, at), day: currentWindow('day', stored, at) }
  if (!stored) return { window, used: { minute: 0, day: 0 }, strikes: 0, bannedUntilMs: 0, banLevel: 0, version: 0 }

  const sameMinute = stored.window.minute === window.minute
  const sameDay = stored.window.day === window.day
  return {
    window,
    used: { minute: sameMinute ? stored.used.minute : 0, day: sameDay ? stored.used.day : 0 },
    strikes: sameMinute ? stored.strikes : 0,
    ...(sameMinute && stored.firstRejectionMs !== undefined ? { firstRejectionMs: stored.firstRejectionMs } : {}),
    bannedUntilMs: stored.bannedUntilMs,
    banLevel: at.nowMs < stored.bannedUntilMs + ban.forgetAfterMs ? stored.banLevel : 0,
    version: stored.version,
  }
}

/** A clock that steps back over a window's start (a failover to a server that is behind) must not open that window twice. */
function currentWindow(name: WindowName, stored: QuotaState | undefined, at: Instant): number {
  const byClock = windowNumber(name, at)
  return stored?.window[name] === byClock + 1 ? byClock + 1 : byClock
}

function exhaustedWindows(state: QuotaState, limits: Limits): WindowName[] {
  return WINDOW_NAMES.filter((name) => state.used[name] >= limits[name])
}

function addReport(state: QuotaState, report: UsageDelta, rules: QuotaRules, at: Instant): QuotaState {
  const used = (name: WindowName) => Math.max(0, state.used[name] + (report.window[name] === state.window[name] ? report.used[name] : 0))
  const counted = { ...state, used: { minute: used('minute'), day: used('day') } }
  const areOfThisMinute = report.window.minute === state.window.minute
  return areOfThisMinute && report.strikes > 0 && !isBanned(state, at) ? addStrikes(counted, report.strikes, rules, at) : counted
}

/** Requests that were on their way when the limit was reached are no strikes: hence the grace after the first rejection. */
function addRejection(state: QuotaState, rules: QuotaRules, at: Instant): QuotaState {
  if (state.firstRejectionMs === undefined) return { ...state, firstRejectionMs: at.nowMs }
  if (at.nowMs - state.firstRejectionMs <= rules.ban.graceMs) return state
  return addStrikes(state, 1, rules, at)
}

function addStrikes(state: QuotaState, count: number, rules: QuotaRules, { nowMs }: Instant): QuotaState {
  const { ban } = rules
  const strikes = state.strikes + count
  if (strikes < strikesToBan(rules)) return { ...state, strikes }
  const banMs = Math.min(ban.firstMs * 2 ** state.banLevel, ban.longestMs)
  const { window, used, version } = state
  return { window, used, strikes: 0, bannedUntilMs: nowMs + banMs, banLevel: state.banLevel + 1, version }
}

/** In one minute. */
export function strikesToBan({ ban, limits }: Pick<QuotaRules, 'ban' | 'limits'>): number {
  return Math.max(ban.minStrikes, limits.minute)
}

export function isBanned(state: QuotaState, { nowMs }: Pick<Instant, 'nowMs'>): boolean {
  return nowMs < state.bannedUntilMs
}

/** For a ban that holds now (which the last strike may just have brought), else for the exhausted windows. */
function rejection(state: QuotaState, { limits, mode }: QuotaRules, at: Instant): Verdict {
  const kind = isBanned(state, at) ? 'banned' : 'exhausted'
  const { quota, servedAgainMs, waitsFor } = quotaOfRefused(state, limits, at)
  if (mode === 'shadow') return { kind: 'admitted', quota, shadowed: kind }
  const retryAfterSeconds = Math.ceil((servedAgainMs - at.nowMs) / 1000)
  return { kind, quota, retryAfterSeconds, ...(waitsFor ? { window: waitsFor } : {}) }
}

/** What a caller that is refused now is told, and when it is served again: once the ban and every exhausted window have ended. */
function quotaOfRefused(
  state: QuotaState,
  limits: Limits,
  at: Instant,
): { quota: Quota; servedAgainMs: number; waitsFor: WindowName | undefined } {
  const banned = isBanned(state, at)
  const [last] = exhaustedWindows(state, limits)
    .map((name) => ({ name, resetMs: windowResetSeconds(name, state.window[name], at) * 1000 }))
    .toSorted((a, b) => b.resetMs - a.resetMs)
  const servedAgainMs = Math.max(banned ? state.bannedUntilMs : 0, last?.resetMs ?? 0)
  const waitsFor = last?.resetMs === servedAgainMs ? last.name : undefined

  const binding = { limit: limits[waitsFor ?? 'minute'], remaining: 0, resetSeconds: Math.ceil(servedAgainMs / 1000) }
  const quota = banned ? quotaOfBanned(binding, limits, at) : { ...toQuota(state, limits, at), binding }
  return { quota, servedAgainMs, waitsFor }
}

function toQuota(state: QuotaState, limits: Limits, at: Instant): Quota {
  const windowQuota = (name: WindowName): WindowQuota => ({
    limit: limits[name],
    remaining: Math.max(0, limits[name] - state.used[name]),
    resetSeconds: windowResetSeconds(name, state.window[name], at),
  })
  const minute = windowQuota('minute')
  const day = windowQuota('day')
  return { nowMs: at.nowMs, minute, day, binding: minute.remaining < day.remaining ? minute : day }
}

/** Nothing is left in either window until the ban is over, whatever was counted in them. */
function quotaOfBanned(binding: WindowQuota, limits: Limits, { nowMs }: Instant): Quota {
  return { nowMs, binding, minute: { ...binding, limit: limits.minute }, day: { ...binding, limit: limits.day } }
}
