import type { QuotaRules, UsageDelta } from '../../core/quota.js'
import type { WindowName, WindowNumbers } from '../../core/window.js'

interface Entry {
  readonly rules: QuotaRules
  readonly report: UsageDelta
}

/** What this replica decided by itself and Redis does not know yet, by key. Whoever takes a report out owns it: so it is told once. */
export class PendingUsage {
  readonly #entries = new Map<string, Entry>()

  get keyIds(): string[] {
    return [...this.#entries.keys()]
  }

  /** What is of an older window than another report is dropped: that window is over. */
  add(keyId: string, rules: QuotaRules, report: UsageDelta): void {
    const before = this.#entries.get(keyId)?.report
    this.#entries.set(keyId, { rules, report: before ? sum(before, report) : report })
  }

  forgetStrikes(keyId: string): void {
    const entry = this.#entries.get(keyId)
    if (entry) this.#entries.set(keyId, { rules: entry.rules, report: { ...entry.report, strikes: 0 } })
  }

  addRequests(keyId: string, rules: QuotaRules, window: WindowNumbers, count: 1 | -1): void {
    this.add(keyId, rules, { window, strikes: 0, used: { minute: count, day: count } })
  }

  take(keyId: string): Entry | undefined {
    const entry = this.#entries.get(keyId)
    this.#entries.delete(keyId)
    return entry
  }
}

function sum(one: UsageDelta, other: UsageDelta): UsageDelta {
  const latest = (name: WindowName) => Math.max(one.window[name], other.window[name])
  const window = { minute: latest('minute'), day: latest('day') }
  const of = ({ window: counted }: UsageDelta, name: WindowName, count: number) => (counted[name] === window[name] ? count : 0)
  const used = (name: WindowName) => of(one, name, one.used[name]) + of(other, name, other.used[name])
  return {
    window,
    strikes: of(one, 'minute', one.strikes) + of(other, 'minute', other.strikes),
    used: { minute: used('minute'), day: used('day') },
  }
}
