import type { QuotaRules, UsageDelta } from '../../core/quota.js'
import { mapWindows } from '../../core/window.js'

export interface Pending {
  /** The rules of the most recent decision. */
  readonly rules: QuotaRules
  readonly delta: UsageDelta
}

/**
 * Usage that this replica granted locally and has not reported to Redis, by key. Remove an entry before you report it, so that it is
 * reported only once.
 */
export class PendingUsage {
  readonly #entries = new Map<string, Pending>()

  get keyIds(): string[] {
    return [...this.#entries.keys()]
  }

  add(keyId: string, { rules, delta }: Pending): void {
    const before = this.#entries.get(keyId)?.delta
    this.#entries.set(keyId, { rules, delta: before ? sum(before, delta) : delta })
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
