/** Windows are fixed: the day starts at 00:00 UTC, the minute has a phase per key. */

export type WindowName = 'minute' | 'day'

export interface Instant {
  /** Unix time in milliseconds. */
  readonly nowMs: number
  /** 0 to 59, from `minutePhaseSeconds`. */
  readonly phaseSeconds: number
}

/** Windows by their number since the epoch: the minute's is `floor((seconds + phase) / 60)`, the day's `floor(seconds / 86400)`. */
export type WindowNumbers = Readonly<Record<WindowName, number>>

/** The day first: where two windows tie, it is the one to name. */
export const WINDOW_NAMES: readonly WindowName[] = ['day', 'minute']
export const WINDOW_SECONDS: Readonly<Record<WindowName, number>> = { minute: 60, day: 86_400 }

/** Spreads keys over the minute, so that callers do not all return in the same second (FNV-1a over the key id). 0 to 59. */
export function minutePhaseSeconds(keyId: string): number {
  let hash = 0x811c9dc5
  for (const character of keyId) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0
  return hash % WINDOW_SECONDS.minute
}

export function windowNumber(name: WindowName, at: Instant): number {
  return Math.floor((Math.floor(at.nowMs / 1000) + getPhaseSeconds(name, at)) / WINDOW_SECONDS[name])
}

/** Unix time in whole seconds at which a window ends. */
export function windowResetSeconds(name: WindowName, number: number, at: Pick<Instant, 'phaseSeconds'>): number {
  return (number + 1) * WINDOW_SECONDS[name] - getPhaseSeconds(name, at)
}

function getPhaseSeconds(name: WindowName, at: Pick<Instant, 'phaseSeconds'>): number {
  return name === 'minute' ? at.phaseSeconds : 0
}
