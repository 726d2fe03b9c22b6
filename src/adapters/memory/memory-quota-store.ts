import type { Clock } from '../../core/ports/clock.js'
import type { QuotaStore } from '../../core/ports/quota-store.js'
import type { Charge, Instant, Quota, QuotaRules, QuotaState, Verdict } from '../../core/quota.js'
import { decide, forgettableAtMs, minutePhaseSeconds, refund } from '../../core/quota.js'
import { ExpiringMap } from './expiring-map.js'

/** The core's decision around a map. A process has one thread, so a decision is atomic by itself. */
export class MemoryQuotaStore implements QuotaStore {
  readonly #states = new ExpiringMap<QuotaState>()

  constructor(private readonly clock: Clock) {}

  /** How many keys it remembers. */
  get size(): number {
    return this.#states.size
  }

  async take(keyId: string, rules: QuotaRules): Promise<Verdict> {
    return this.#change(keyId, rules, (state, at) => decide(state, rules, at)).verdict
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota> {
    return this.#change(keyId, rules, (state, at) => refund(state, charge, rules, at)).quota
  }

  #change<Outcome extends { state: QuotaState }>(
    keyId: string,
    rules: QuotaRules,
    next: (state: QuotaState | undefined, at: Instant) => Outcome,
  ): Outcome {
    const at = { nowMs: this.clock.nowMs(), phaseSeconds: minutePhaseSeconds(keyId) }
    const outcome = next(this.#states.get(keyId, at.nowMs), at)
    this.#states.set(keyId, outcome.state, forgettableAtMs(outcome.state, rules.ban), at.nowMs)
    return outcome
  }
}
