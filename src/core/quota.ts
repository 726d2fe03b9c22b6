/**
 * How a request is decided. Pure: the same state, rules and instant always give the same verdict.
 *
 * All windows are checked first, then all are charged or none. A refused request costs nothing; it can only add a strike.
 * Windows are fixed: the day starts at 00:00 UTC, the minute has a phase per key.
 */

export type WindowName = 'minute' | 'day'

/** Requests per window, each 1 or more. */
export type Limits = Readonly<Record<WindowName, number>>

export interface BanRules {
  /** A refusal counts as a strike only when it comes later than this after the minute's first refusal. */
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

export interface Instant {
  /** Unix time in milliseconds. */
  readonly nowMs: number
  /** 0 to 59, from `minutePhaseSeconds`. */
  readonly phaseSeconds: number
}

/** Windows by their number since the epoch: the minute's is `floor((seconds + phase) / 60)`, the day's `floor(seconds / 86400)`. */
export type WindowNumbers = Readonly<Record<WindowName, number>>

export interface QuotaState {
  readonly window: WindowNumbers
  readonly used: Readonly<Record<WindowName, number>>
  /** Of the current minute. */
  readonly strikes: number
  /** Of the current minute. */
  readonly firstRefusalMs?: number
  /** End of the latest ban, 0 before the first. */
  readonly bannedUntilMs: number
  /** How many bans in a row, 0 when they are forgotten. */
  readonly banLevel: number
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

/** The windows that a request was charged to, for a refund. */
export type Charge = WindowNumbers

export interface Refusal {
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
  | { readonly kind: 'admitted'; readonly quota: Quota; readonly shadowed: Refusal['kind'] }
  | Refusal

export interface Decision {
  readonly verdict: Verdict
  readonly state: QuotaState
}

/** The day first: where two windows tie, it is the one to name. */
const WINDOW_NAMES: readonly WindowName[] = ['day', 'minute']
const WINDOW_SECONDS: Readonly<Record<WindowName, number>> = { minute: 60, day: 86_400 }

/** Spreads keys over the minute, so that callers do not all return in the same second (FNV-1a over the key id). 0 to 59. */
export function minutePhaseSeconds(keyId: string): number {
  let hash = 0x811c9dc5
  for (const character of keyId) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0
  return hash % WINDOW_SECONDS.minute
}

export function windowNumber(name: WindowName, at: Instant): number {
  return Math.floor((Math.floor(at.nowMs / 1000) + phaseOf(name, at)) / WINDOW_SECONDS[name])
}

/** Unix time in whole seconds at which a window ends. */
export function windowResetSeconds(name: WindowName, number: number, at: Pick<Instant, 'phaseSeconds'>): number {
  return (number + 1) * WINDOW_SECONDS[name] - phaseOf(name, at)
}

/** From this Unix time in milliseconds on, the state says nothing that a missing one would not. */
export function forgettableAtMs(state: QuotaState, { forgetAfterMs }: BanRules): number {
  const dayEndMs = (state.window.day + 1) * WINDOW_SECONDS.day * 1000
  // A minute may reach over midnight by its phase.
  const minuteEndMs = (state.window.minute + 1) * WINDOW_SECONDS.minute * 1000
  return Math.max(dayEndMs, minuteEndMs, state.banLevel > 0 ? state.bannedUntilMs + forgetAfterMs : 0)
}

/** Decides one request. `stored` is absent for a key that was never seen, or was forgotten. */
export function decide(stored: QuotaState | undefined, rules: QuotaRules, at: Instant): Decision {
  const state = current(stored, rules.ban, at)
  if (isBanned(state, at)) return refuse(state, rules, at)
  if (exhaustedWindows(state, rules.limits).length > 0) return refuse(addStrike(state, rules, at), rules, at)

  const charged = { ...state, used: { minute: state.used.minute + 1, day: state.used.day + 1 } }
  return { verdict: { kind: 'admitted', quota: quotaOf(charged, rules.limits, at), charge: state.window }, state: charged }
}

/** Gives back one request, in the windows that it was charged to only, and never below zero. */
export function refund(
  stored: QuotaState | undefined,
  charge: Charge,
  rules: QuotaRules,
  at: Instant,
): { quota: Quota; state: QuotaState } {
  const state = current(stored, rules.ban, at)
  const used = (name: WindowName) => Math.max(0, state.used[name] - (state.window[name] === charge[name] ? 1 : 0))
  const refunded = { ...state, used: { minute: used('minute'), day: used('day') } }
  const quota = isBanned(refunded, at) ? quotaOfRefused(refunded, rules.limits, at).quota : quotaOf(refunded, rules.limits, at)
  return { quota, state: refunded }
}

function phaseOf(name: WindowName, at: Pick<Instant, 'phaseSeconds'>): number {
  return name === 'minute' ? at.phaseSeconds : 0
}

/** The state as of now: counts of windows that have passed are zero, and a ban long past is forgotten. */
function current(stored: QuotaState | undefined, ban: BanRules, at: Instant): QuotaState {
  const window = { minute: currentWindow('minute', stored, at), day: currentWindow('day', stored, at) }
  if (!stored) return { window, used: { minute: 0, day: 0 }, strikes: 0, bannedUntilMs: 0, banLevel: 0 }

  const sameMinute = stored.window.minute === window.minute
  const sameDay = stored.window.day === window.day
  return {
    window,
    used: { minute: sameMinute ? stored.used.minute : 0, day: sameDay ? stored.used.day : 0 },
    strikes: sameMinute ? stored.strikes : 0,
    ...(sameMinute && stored.firstRefusalMs !== undefined ? { firstRefusalMs: stored.firstRefusalMs } : {}),
    bannedUntilMs: stored.bannedUntilMs,
    banLevel: at.nowMs < stored.bannedUntilMs + ban.forgetAfterMs ? stored.banLevel : 0,
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

/** Requests that were on their way when the limit was reached are no strikes: hence the grace after the first refusal. */
function addStrike(state: QuotaState, { ban, limits }: QuotaRules, { nowMs }: Instant): QuotaState {
  if (state.firstRefusalMs === undefined) return { ...state, firstRefusalMs: nowMs }
  if (nowMs - state.firstRefusalMs <= ban.graceMs) return state

  const strikes = state.strikes + 1
  if (strikes < Math.max(ban.minStrikes, limits.minute)) return { ...state, strikes }
  const banMs = Math.min(ban.firstMs * 2 ** state.banLevel, ban.longestMs)
  return { window: state.window, used: state.used, strikes: 0, bannedUntilMs: nowMs + banMs, banLevel: state.banLevel + 1 }
}

function isBanned(state: QuotaState, { nowMs }: Instant): boolean {
  return nowMs < state.bannedUntilMs
}

/** Refuses in `state`: for a ban that holds now (which the last strike may just have brought), else for the exhausted windows. */
function refuse(state: QuotaState, { limits, mode }: QuotaRules, at: Instant): Decision {
  const kind = isBanned(state, at) ? 'banned' : 'exhausted'
  const { quota, servedAgainMs, waitsFor } = quotaOfRefused(state, limits, at)
  if (mode === 'shadow') return { verdict: { kind: 'admitted', quota, shadowed: kind }, state }
  const retryAfterSeconds = Math.ceil((servedAgainMs - at.nowMs) / 1000)
  return { verdict: { kind, quota, retryAfterSeconds, ...(waitsFor ? { window: waitsFor } : {}) }, state }
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
  const quota = banned ? quotaOfBanned(binding, limits, at) : { ...quotaOf(state, limits, at), binding }
  return { quota, servedAgainMs, waitsFor }
}

function quotaOf(state: QuotaState, limits: Limits, at: Instant): Quota {
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
