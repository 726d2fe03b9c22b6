import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/ports/clock.js'
import type { StaleKeyRecord } from '../../core/ports/quota-store.js'
import type { UsageReader } from '../../core/ports/usage-reader.js'
import type { Charge, KeyVersion, Quota, QuotaRules, QuotaState, QuotaUsage, Verdict } from '../../core/quota.js'
import { decide, expiresAtMs, hasStartedBan, isStale, refund, toUsage } from '../../core/quota.js'
import type { Instant, WindowNumbers } from '../../core/window.js'
import { mapWindows } from '../../core/window.js'
import { inBatches } from './in-batches.js'
import type { Pending } from './pending-usage.js'
import { PendingUsage } from './pending-usage.js'
import { restrictToShare } from './quota-share.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'
import type { RedisQuotaStore, Report } from './redis-quota-store.js'
import { MAX_KNOWN_KEYS } from './known-states.js'
import type { CacheableQuotaStore } from './rejection-cache.js'

export interface LocalDecisionListeners {
  /** Called for each request that is admitted without Redis. */
  readonly onLocalGrant?: () => void
  /** Called for each request that starts a ban without Redis. */
  readonly onLocalBan?: () => void
}

/**
 * While Redis is unavailable, decides locally: this replica grants its share of each quota and reports the usage to Redis afterwards.
 * If Redis did not respond to a command, that request is not reported, because Redis may have counted it.
 */
export class FallbackQuotaStore implements CacheableQuotaStore, UsageReader {
  readonly #pendingUsage: PendingUsage
  /** The states that result from local decisions. They are kept after an outage, so that a share is granted only once per window. */
  readonly #states: LRUCache<string, QuotaState>
  /** Charges of local decisions that Redis may also have counted. They are neither reported nor refunded in Redis. */
  readonly #unreportedCharges = new WeakSet<Charge>()
  #reporting: Promise<void> = Promise.resolve()
  #nextReporting: Promise<void> | undefined

  /** `replicas`: the number of replicas that share the quotas, 1 or more. `clock`: the local clock of this replica. */
  constructor(
    private readonly redis: RedisQuotaStore,
    private readonly replicas: { readonly count: number },
    clock: Clock,
    private readonly listeners: LocalDecisionListeners = {},
  ) {
    this.#pendingUsage = new PendingUsage(clock)
    this.#states = new LRUCache({ max: MAX_KNOWN_KEYS, ttl: 1, ttlResolution: 0, perf: { now: () => clock.monotonicMs() } })
    redis.onUp(() => void this.reportPendingUsage())
  }

  async take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<Verdict | StaleKeyRecord> {
    const pending = this.#pendingUsage.remove(keyId)
    try {
      const verdict = await this.redis.take(keyId, rules, keyVersion, toReport(pending))
      if (verdict.kind === 'stale') this.#addPending(keyId, pending)
      return verdict
    } catch (error) {
      const { maybeExecuted } = requireOutage(error)
      if (!maybeExecuted) this.#addPending(keyId, pending)
      return this.#takeLocally(keyId, rules, keyVersion, { mayBeCounted: maybeExecuted })
    }
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota> {
    if (this.#unreportedCharges.has(charge)) return this.#refundLocally(keyId, charge, rules)
    try {
      return await this.redis.refund(keyId, charge, rules)
    } catch (error) {
      // Redis may have refunded the request. A second refund would free two requests.
      if (requireOutage(error).maybeExecuted) return toUsage(this.#stateAt(keyId, rules), rules, this.now(keyId)).quota
      this.#addPending(keyId, toPending(rules, charge, { requests: -1 }))
      return this.#refundLocally(keyId, charge, rules)
    }
  }

  async readUsage(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<QuotaUsage | StaleKeyRecord> {
    try {
      return await this.redis.readUsage(keyId, rules, keyVersion)
    } catch (error) {
      requireOutage(error)
      const at = this.now(keyId)
      const state = this.#stateAt(keyId, rules, at)
      return isStale(keyVersion, state.keyVersion) ? { kind: 'stale', knownVersion: state.keyVersion } : toUsage(state, rules, at)
    }
  }

  sharedState(keyId: string): QuotaState | undefined {
    return this.redis.isUp(keyId) ? this.redis.lastState(keyId) : undefined
  }

  now(keyId: string): Instant {
    return this.redis.now(keyId)
  }

  addStrike(keyId: string, rules: QuotaRules, windows: WindowNumbers): void {
    this.#addPending(keyId, toPending(rules, windows, { strikes: 1 }))
  }

  /** The number of keys with usage that Redis does not know. */
  get pendingKeyCount(): number {
    return this.#pendingUsage.keyIds.length
  }

  /** Reports to Redis what this replica decided locally. Resolves to the number of keys whose usage could not be reported. */
  async reportPendingUsage(): Promise<number> {
    this.#nextReporting ??= this.#reporting.then(() => {
      this.#nextReporting = undefined
      this.#reporting = this.#reportAll()
      return this.#reporting
    })
    await this.#nextReporting
    return this.pendingKeyCount
  }

  #addPending(keyId: string, pending: Pending | undefined): void {
    if (pending) this.#pendingUsage.add(keyId, pending, this.now(keyId).nowMs)
  }

  #takeLocally(
    keyId: string,
    rules: QuotaRules,
    keyVersion: KeyVersion,
    { mayBeCounted }: { mayBeCounted: boolean },
  ): Verdict | StaleKeyRecord {
    const at = this.redis.now(keyId)
    const stored = this.#stateAt(keyId, rules, at)
    if (isStale(keyVersion, stored.keyVersion)) return { kind: 'stale', knownVersion: stored.keyVersion }
    const { verdict, state } = decide(stored, rules, at)
    this.#keep(keyId, { ...state, keyVersion: keyVersion.version }, rules, at)
    if (verdict.kind === 'admitted') this.listeners.onLocalGrant?.()
    if ('charge' in verdict && mayBeCounted) this.#unreportedCharges.add(verdict.charge)
    else if ('charge' in verdict) this.#addPending(keyId, toPending(rules, verdict.charge, { requests: 1 }))
    if (hasStartedBan(stored, state)) {
      this.listeners.onLocalBan?.()
      this.#addPending(keyId, { ...toPending(rules, state.window, {}), ban: withoutUsage(state) })
    }
    return verdict
  }

  #refundLocally(keyId: string, charge: Charge, rules: QuotaRules): Quota {
    const at = this.now(keyId)
    const { quota, state } = refund(this.#stateAt(keyId, rules, at), charge, rules, at)
    this.#keep(keyId, state, rules, at)
    return quota
  }

  #stateAt(keyId: string, rules: QuotaRules, at = this.now(keyId)): QuotaState {
    const states = { own: this.#states.get(keyId), shared: this.redis.lastState(keyId) }
    return restrictToShare(states, rules, at, this.replicas.count)
  }

  #keep(keyId: string, state: QuotaState, { ban }: QuotaRules, { nowMs }: Instant): void {
    this.#states.set(keyId, state, { ttl: Math.max(1, expiresAtMs(state, ban) - nowMs) })
  }

  async #reportAll(): Promise<void> {
    this.#states.purgeStale()
    const keyIds = this.#pendingUsage.keyIds.filter((keyId) => this.redis.isUp(keyId))
    await inBatches(keyIds, (keyId) => this.#report(keyId))
  }

  async #report(keyId: string): Promise<void> {
    const pending = this.#pendingUsage.remove(keyId)
    if (!pending) return
    try {
      await this.redis.reconcile(keyId, pending.rules, toReport(pending))
    } catch (error) {
      if (!requireOutage(error).maybeExecuted) this.#addPending(keyId, pending)
    }
  }
}

function toPending(rules: QuotaRules, window: Charge, { requests = 0, strikes = 0 }): Pending {
  return { rules, delta: { window, strikes, used: mapWindows(() => requests) } }
}

function toReport(pending: Pending | undefined): Report {
  return pending ? { delta: pending.delta, known: pending.ban ? [pending.ban] : undefined } : {}
}

/** Only the ban. The usage of a local state includes requests that this replica must not grant. */
function withoutUsage(state: QuotaState): QuotaState {
  return { ...state, window: mapWindows(() => 0), used: mapWindows(() => 0), strikes: 0 }
}

/** Returns the error if it reports an outage of Redis. Throws any other error. */
function requireOutage(error: unknown): RedisUnavailable {
  if (error instanceof RedisUnavailable) return error
  throw error
}
