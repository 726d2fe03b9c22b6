import { fnv1a } from './fnv1a.js'

/**
 * The windows of a quota. Windows are fixed: a day starts at 00:00 UTC, a minute starts at a second that depends on the key (its phase).
 *
 * `keptAhead`: a window that was used is kept if the clock then steps back by at most this number of windows. If it steps back further, it
 * was wrong before, and the window would last too long.
 */
export const WINDOWS = {
  minute: { seconds: 60, hasPhase: true, keptAhead: 60 },
  day: { seconds: 86_400, hasPhase: false, keptAhead: 1 },
} as const

export type WindowName = keyof typeof WINDOWS

export function mapWindows<Value>(toValue: (name: WindowName) => Value): Readonly<Record<WindowName, Value>> {
  return { minute: toValue('minute'), day: toValue('day') }
}

export interface Instant {
  /** Unix time in milliseconds. */
  readonly nowMs: number
  /** 0 to 59, from `getMinutePhaseSeconds`. */
  readonly phaseSeconds: number
}

/** Windows by their number since the epoch: `floor((seconds + phase) / 60)` for a minute, `floor(seconds / 86400)` for a day. */
export type WindowNumbers = Readonly<Record<WindowName, number>>

/** Returns 0 to 59. Spreads keys over the minute, so that clients do not all return in the same second. */
export function getMinutePhaseSeconds(keyId: string): number {
  return fnv1a(keyId) % WINDOWS.minute.seconds
}

export function getWindowNumber(name: WindowName, at: Instant): number {
  return Math.floor((Math.floor(at.nowMs / 1000) + getPhaseSeconds(name, at)) / WINDOWS[name].seconds)
}

/** Unix time in whole seconds at which a window ends. */
export function getWindowResetSeconds(name: WindowName, number: number, at: Pick<Instant, 'phaseSeconds'>): number {
  return (number + 1) * WINDOWS[name].seconds - getPhaseSeconds(name, at)
}

function getPhaseSeconds(name: WindowName, { phaseSeconds }: Pick<Instant, 'phaseSeconds'>): number {
  return WINDOWS[name].hasPhase ? phaseSeconds : 0
}
