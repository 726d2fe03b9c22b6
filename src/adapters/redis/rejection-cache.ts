import { LRUCache } from 'lru-cache'
import type { KeyVersion, QuotaState, Verdict } from '../../core/quota.js'
import { decide } from '../../core/quota.js'
import type { QuotaRules } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'

/** How long a key that hammers is refused without keyVersion Redis. */
const REMEMBERED_MS = 1_000
/** So many rejections by Redis within a second are hammering. */
const HAMMERING = 10
const WATCHED_MS = 1_000
const REMEMBERED_KEYS = 10_000

interface Entry {
  readonly state: QuotaState
  readonly version: number
  /** Rejections by Redis since then, all within `WATCHED_MS`. */
  readonly sinceMs: number
  readonly count: number
  readonly endMs: number
}

/** A rejection that Redis was not asked for, and whether it was a strike. */
export interface CachedRejection {
  readonly verdict: Verdict
  readonly state: QuotaState
  readonly isStrike: boolean
}

/** Refuses keys that hammer, by the state that refused them. Never admits, and never begins a ban. Instants are by the clock that decides. */
export class RejectionCache {
  readonly #entries = new LRUCache<string, Entry>({ max: REMEMBERED_KEYS })
  readonly #rememberedMs: number

  constructor({ rememberedMs = REMEMBERED_MS } = {}) {
    this.#rememberedMs = rememberedMs
  }

  /** Notes a rejection by Redis. */
  remember(keyId: string, { version }: KeyVersion, state: QuotaState, { nowMs }: Instant): void {
    const last = this.#entries.get(keyId)
    const isWatched = last !== undefined && nowMs < Math.max(last.sinceMs, last.endMs) + WATCHED_MS
    const count = isWatched ? last.count + 1 : 1
    const endMs = count >= HAMMERING ? nowMs + this.#rememberedMs : 0
    this.#entries.set(keyId, { state, version, sinceMs: isWatched ? last.sinceMs : nowMs, count, endMs })
  }

  forget(keyId: string): void {
    this.#entries.delete(keyId)
  }

  clear(): void {
    this.#entries.clear()
  }

  /** Undefined where Redis has to be asked. */
  refuse(keyId: string, rules: QuotaRules, keyVersion: KeyVersion, at: Instant): CachedRejection | undefined {
    const entry = this.#entries.get(keyId)
    if (!entry || keyVersion.justRead || entry.version !== keyVersion.version) return undefined
    // By a clock that stepped back it would be remembered for longer.
    if (at.nowMs < entry.endMs - this.#rememberedMs || at.nowMs >= entry.endMs) return undefined

    const { verdict, state } = decide(entry.state, rules, at)
    const beginsBan = state.banLevel > entry.state.banLevel
    // The grace is measured from the first rejection of a minute: Redis has to know when that was.
    const isFirst = state.firstRejectionMs !== entry.state.firstRejectionMs
    if (verdict.kind === 'admitted' || beginsBan || isFirst) return undefined
    this.#entries.set(keyId, { ...entry, state })
    return { verdict, state, isStrike: state.strikes > entry.state.strikes }
  }
}
