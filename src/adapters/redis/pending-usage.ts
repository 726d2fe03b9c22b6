import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/ports/clock.js'
import { mergeQuotaStates } from '../../core/merge-quota-states.js'
import type { QuotaRules, QuotaState, UsageDelta } from '../../core/quota.js'
import { getWindowResetSeconds, mapWindows } from '../../core/window.js'

export interface Pending {
  /** The rules of the most recent decision. */
  readonly rules: QuotaRules
  readonly delta: UsageDelta
  /** The ban that this replica imposed. */
  readonly ban?: QuotaState
}

/** If there are more, the usage of the least recently used keys is not reported. */
const MAX_KEYS = 50_000

/**
 * Usage and bans that this replica decided locally and has not reported to Redis, by key. Remove an entry before you report it, so that it is
 * reported only once. An entry disappears when its windows and its ban have ended.
 */
export class PendingUsage {
  readonly #entries: LRUCache<string, Pending>

  constructor(clock: Clock) {
    this.#entries = new LRUCache({ max: MAX_KEYS, ttl: 1, ttlResolution: 0, perf: { now: () => clock.monotonicMs() } })
  }

  /** The keys with an entry. */
  get keyIds(): string[] {
    this.#entries.purgeStale()
    return [...this.#entries.keys()]
  }

  /** `nowMs`: Unix time in milliseconds, by the clock that quota decisions use. */
  add(keyId: string, added: Pending, nowMs: number): void {
    const before = this.#entries.get(keyId)
    const delta = before ? sum(before.delta, added.delta) : added.delta
    const ban = added.ban && before?.ban ? mergeQuotaStates(added.ban, before.ban) : (added.ban ?? before?.ban)
    // Ignores the phase of the minute, which gives a later time, so that a minute that spans midnight has ended as well.
    const windowEndsMs = mapWindows((name) => getWindowResetSeconds(name, delta.window[name], { phaseSeconds: 0 }) * 1000)
    const endMs = Math.max(...Object.values(windowEndsMs), ban?.bannedUntilMs ?? 0)
    if (endMs > nowMs) this.#entries.set(keyId, { rules: added.rules, delta, ...(ban ? { ban } : {}) }, { ttl: endMs - nowMs })
  }

  remove(keyId: string): Pending | undefined {
    const entry = this.#entries.get(keyId)
    this.#entries.delete(keyId)
    return entry
  }
}

/** Usage in the older of two windows is dropped, because that window has ended. */
function sum(one: UsageDelta, other: UsageDelta): UsageDelta {
  const window = mapWindows((name) => Math.max(one.window[name], other.window[name]))
  const both = mapWindows((name) => [one, other].filter((delta) => delta.window[name] === window[name]))
  return {
    window,
    strikes: both.minute.reduce((strikes, delta) => strikes + delta.strikes, 0),
    used: mapWindows((name) => both[name].reduce((used, delta) => used + delta.used[name], 0)),
  }
}
