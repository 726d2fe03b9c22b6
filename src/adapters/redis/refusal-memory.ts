import { LRUCache } from 'lru-cache'
import type { Asking, QuotaRules, QuotaState, Verdict } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { decide } from '../../core/quota.js'

/** How long a key that goes on sending is refused without asking Redis. */
const REMEMBERED_MS = 1_000
const REMEMBERED_KEYS = 10_000

interface Entry {
  readonly state: QuotaState
  readonly generation: number
  /** By the clock that decides. */
  readonly endMs: number
}

/** A refusal that Redis was not asked for, and whether it was a strike. */
export interface Swallowed {
  readonly verdict: Verdict
  readonly state: QuotaState
  readonly isStrike: boolean
}

/** Refuses keys that were refused just now, by the state that refused them. Never admits, and never begins a ban. */
export class RefusalMemory {
  readonly #entries = new LRUCache<string, Entry>({ max: REMEMBERED_KEYS })

  remember(keyId: string, { generation }: Asking, state: QuotaState, { nowMs }: Instant): void {
    this.#entries.set(keyId, { state, generation, endMs: nowMs + REMEMBERED_MS })
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
    if (!entry || asking.fresh || entry.generation !== asking.generation || at.nowMs >= entry.endMs) return undefined

    const { verdict, state } = decide(entry.state, rules, at)
    const beginsBan = state.banLevel > entry.state.banLevel
    if (verdict.kind === 'admitted' || beginsBan) return undefined
    this.#entries.set(keyId, { ...entry, state })
    return { verdict, state, isStrike: state.strikes > entry.state.strikes }
  }
}
