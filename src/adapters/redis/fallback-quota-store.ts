import type { StaleKeyRecord } from '../../core/ports/quota-store.js'
import type { Charge, KeyVersion, Quota, QuotaRules, QuotaState, Verdict } from '../../core/quota.js'
import { decide, expiresAtMs, isStale, refund } from '../../core/quota.js'
import type { Instant, WindowNumbers } from '../../core/window.js'
import { mapWindows } from '../../core/window.js'
import { PendingUsage } from './pending-usage.js'
import { restrictToShare } from './quota-share.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'
import type { RedisQuotaStore } from './redis-quota-store.js'
import type { CacheableQuotaStore } from './rejection-cache.js'

/** Number of keys that are reconciled concurrently when the breaker closes. */
const RECONCILE_CONCURRENCY = 64

/**
 * While Redis is unavailable, decides locally: this replica grants its share of each quota and reports the usage to Redis afterwards.
 * If Redis did not respond to a command, that request is not reported, because Redis may have counted it.
 */
export class FallbackQuotaStore implements CacheableQuotaStore {
  readonly #pendingUsage = new PendingUsage()
  /** The states that result from local decisions. They are kept after an outage, so that a share is granted only once per window. */
  readonly #states = new Map<string, { readonly state: QuotaState; readonly endMs: number }>()

  /** `replicas`: the number of replicas that share the quotas, 1 or more. */
  constructor(
    private readonly redis: RedisQuotaStore,
    private readonly replicas: number,
  ) {
    redis.onChange((isUp) => {
      if (isUp) void this.#reconcileAll()
    })
  }

  async take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<Verdict | StaleKeyRecord> {
    const pending = this.#pendingUsage.remove(keyId)
    try {
      const verdict = await this.redis.take(keyId, rules, keyVersion, pending?.delta)
      if (pending && verdict.kind === 'stale') this.#pendingUsage.add(keyId, pending)
      return verdict
    } catch (error) {
      const { maybeExecuted } = requireOutage(error)
      if (pending && !maybeExecuted) this.#pendingUsage.add(keyId, pending)
      const verdict = this.#takeLocally(keyId, rules, keyVersion)
      if ('charge' in verdict && !maybeExecuted) this.#addPending(keyId, rules, verdict.charge, { requests: 1 })
      return verdict
    }
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota> {
    try {
      return await this.redis.refund(keyId, charge, rules)
    } catch (error) {
      if (!requireOutage(error).maybeExecuted) this.#addPending(keyId, rules, charge, { requests: -1 })
      const at = this.redis.now(keyId)
      const { quota, state } = refund(this.#stateAt(keyId, rules, at), charge, rules, at)
      this.#keep(keyId, state, rules)
      return quota
    }
  }

  sharedState(keyId: string): QuotaState | undefined {
    return this.redis.isUp ? this.redis.lastState(keyId) : undefined
  }

  now(keyId: string): Instant {
    return this.redis.now(keyId)
  }

  addStrike(keyId: string, rules: QuotaRules, windows: WindowNumbers): void {
    this.#addPending(keyId, rules, windows, { strikes: 1 })
  }

  #addPending(keyId: string, rules: QuotaRules, window: Charge, { requests = 0, strikes = 0 }): void {
    this.#pendingUsage.add(keyId, { rules, delta: { window, strikes, used: mapWindows(() => requests) } })
  }

  #takeLocally(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Verdict | StaleKeyRecord {
    const at = this.redis.now(keyId)
    const stored = this.#stateAt(keyId, rules, at)
    if (isStale(keyVersion, stored)) return { kind: 'stale' }
    const { verdict, state } = decide(stored, rules, at)
    this.#keep(keyId, { ...state, keyVersion: keyVersion.version }, rules)
    return verdict
  }

  #stateAt(keyId: string, rules: QuotaRules, at: Instant): QuotaState {
    const states = { own: this.#states.get(keyId)?.state, shared: this.redis.lastState(keyId) }
    return restrictToShare(states, rules, at, this.replicas)
  }

  #keep(keyId: string, state: QuotaState, { ban }: QuotaRules): void {
    this.#states.set(keyId, { state, endMs: expiresAtMs(state, ban) })
  }

  async #reconcileAll(): Promise<void> {
    for (const [keyId, { endMs }] of this.#states) if (endMs <= this.now(keyId).nowMs) this.#states.delete(keyId)
    const { keyIds } = this.#pendingUsage
    while (this.redis.isUp && keyIds.length > 0) {
      await Promise.all(keyIds.splice(0, RECONCILE_CONCURRENCY).map((keyId) => this.#reconcile(keyId)))
    }
  }

  async #reconcile(keyId: string): Promise<void> {
    const pending = this.#pendingUsage.remove(keyId)
    if (!pending) return
    try {
      await this.redis.reconcile(keyId, pending.rules, pending.delta)
    } catch (error) {
      if (!requireOutage(error).maybeExecuted) this.#pendingUsage.add(keyId, pending)
    }
  }
}

/** Returns the error if it reports an outage of Redis. Throws any other error. */
function requireOutage(error: unknown): RedisUnavailable {
  if (error instanceof RedisUnavailable) return error
  throw error
}
