import { LRUCache } from 'lru-cache'
import type { Asking, QuotaState, Verdict } from '../../core/quota.js'
import { decide } from '../../core/quota.js'
import type { QuotaRules } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'

/** How long a key that hammers is refused without asking Redis. */
const REMEMBERED_MS = 1_000
/** So many refusals by Redis within a second are hammering. */
const HAMMERING = 10
const WATCHED_MS = 1_000
const REMEMBERED_KEYS = 10_000

interface Entry {
  readonly state: QuotaState
  readonly generation: number
  /** Refusals by Redis since then, all within `WATCHED_MS`. */
  readonly sinceMs: number
  readonly count: number
  readonly endMs: number
}

/** A refusal that Redis was not asked for, and whether it was a strike. */
export interface Swallowed {
  readonly verdict: Verdict
  readonly state: QuotaState
  readonly isStrike: boolean
}

/** Refuses keys that hammer, by the state that refused them. Never admits, and never begins a ban. Instants are by the clock that decides. */
export class RefusalMemory {
  readonly #entries = new LRUCache<string, Entry>({ max: REMEMBERED_KEYS })
  readonly #rememberedMs: number

  constructor({ rememberedMs = REMEMBERED_MS } = {}) {
    this.#rememberedMs = rememberedMs
  }

  /** Notes a refusal by Redis. */
  remember(keyId: string, { generation }: Asking, state: QuotaState, { nowMs }: Instant): void {
    const last = this.#entries.get(keyId)
    const isWatched = last !== undefined && nowMs < Math.max(last.sinceMs, last.endMs) + WATCHED_MS
    const count = isWatched ? last.count + 1 : 1
    const endMs = count >= HAMMERING ? nowMs + this.#rememberedMs : 0
    this.#entries.set(keyId, { state, generation, sinceMs: isWatched ? last.sinceMs : nowMs, count, endMs })
  }

  forget(keyId: string): void {
    this.#entries.delete(keyId)
  }

  clear(): void {
    this.#entries.clear()
  }

  /** Undefined where Redis has to be asked. */
  refuse(keyId: string, rules: QuotaRules, asking: Asking, at: Instant): Swallowed | undefined {
    const entry = this.#entries.get(keyId)
    if (!entry || asking.fresh || entry.generation !== asking.generation) return undefined
    // By a clock that stepped back it would be remembered for longer.
    if (at.nowMs < entry.endMs - this.#rememberedMs || at.nowMs >= entry.endMs) return undefined

    const { verdict, state } = decide(entry.state, rules, at)
    const beginsBan = state.banLevel > entry.state.banLevel
    // The grace is measured from the first refusal of a minute: Redis has to know when that was.
    const isFirst = state.firstRefusalMs !== entry.state.firstRefusalMs
    if (verdict.kind === 'admitted' || beginsBan || isFirst) return undefined
    this.#entries.set(keyId, { ...entry, state })
    return { verdict, state, isStrike: state.strikes > entry.state.strikes }
  }
}
