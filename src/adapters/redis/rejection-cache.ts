import { LRUCache } from 'lru-cache'
import type { QuotaStore, StaleKeyRecord } from '../../core/ports/quota-store.js'
import type { Charge, KeyVersion, Quota, QuotaRules, QuotaState, Rejection, Verdict } from '../../core/quota.js'
import { decide, hasStartedBan } from '../../core/quota.js'
import type { Instant, WindowNumbers } from '../../core/window.js'

/** How long a key is rejected without a call to Redis. */
const REJECT_MS = 1_000
/** A key is rejected from the cache after this number of rejections within `COUNTING_MS`. */
const MIN_REJECTIONS = 10
const COUNTING_MS = 1_000
const MAX_KEYS = 10_000

/** A store whose rejections can be cached. */
export interface CacheableQuotaStore extends QuotaStore {
  /** The current time on the clock that quota decisions use. */
  now(keyId: string): Instant
  /** The last known state of the key that all replicas share. Undefined while the shared state is unavailable. */
  sharedState(keyId: string): QuotaState | undefined
  /** Reports one strike with the next decision for the key. */
  addStrike(keyId: string, rules: QuotaRules, windows: WindowNumbers): void
}

interface Entry {
  /** The state at the last rejection by the store, plus the strikes of the rejections from the cache. */
  readonly state: QuotaState
  readonly version: number
  /** Time of the first of `count` rejections by the store. */
  readonly sinceMs: number
  readonly count: number
  /** When the cache stops rejecting the key, or 0 if it does not reject the key. */
  readonly endMs: number
}

/**
 * If a client keeps sending requests with a rejected key, rejects them for up to one second without a call to Redis, based on the state in
 * which Redis rejected the key. Never admits a request and never starts a ban. All times are on the clock that quota decisions use.
 */
export class RejectionCache implements QuotaStore {
  readonly #entries = new LRUCache<string, Entry>({ max: MAX_KEYS })

  /** `cachedMs`: 0 disables the cache. */
  constructor(
    private readonly store: CacheableQuotaStore,
    private readonly cachedMs = REJECT_MS,
  ) {}

  async take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<Verdict | StaleKeyRecord> {
    const cached = this.#reject(keyId, rules, keyVersion)
    if (cached) return cached
    const verdict = await this.store.take(keyId, rules, keyVersion)
    const state = this.store.sharedState(keyId)
    if ((verdict.kind === 'exhausted' || verdict.kind === 'banned') && state) this.#remember(keyId, keyVersion, verdict, state)
    return verdict
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota> {
    const quota = await this.store.refund(keyId, charge, rules)
    this.#entries.delete(keyId)
    return quota
  }

  /** Returns a rejection from the cache, or undefined if the store has to decide. */
  #reject(keyId: string, rules: QuotaRules, { version, readSince }: KeyVersion): Verdict | undefined {
    const entry = this.#entries.get(keyId)
    if (!entry || readSince !== undefined || entry.version !== version) return undefined
    const at = this.store.now(keyId)
    // The lower bound applies if the clock steps back.
    if (at.nowMs < entry.endMs - this.cachedMs || at.nowMs >= entry.endMs) return undefined

    const { verdict, state } = decide(entry.state, rules, at)
    // The grace period starts with the first rejection of a minute, so Redis has to record that rejection.
    const isFirst = state.firstRejectionMs !== entry.state.firstRejectionMs
    if (verdict.kind === 'admitted' || hasStartedBan(entry.state, state) || isFirst) return undefined
    if (state.strikes > entry.state.strikes) this.store.addStrike(keyId, rules, state.window)
    this.#entries.set(keyId, { ...entry, state })
    return verdict
  }

  #remember(keyId: string, { version }: KeyVersion, { quota: { nowMs } }: Rejection, state: QuotaState): void {
    const last = this.#entries.get(keyId)
    const isWatched = last !== undefined && nowMs < Math.max(last.sinceMs, last.endMs) + COUNTING_MS
    const count = isWatched ? last.count + 1 : 1
    const endMs = count >= MIN_REJECTIONS ? nowMs + this.cachedMs : 0
    this.#entries.set(keyId, { state, version, sinceMs: isWatched ? last.sinceMs : nowMs, count, endMs })
  }
}
