import type { Clock } from '../../core/ports/clock.js'
import type { QuotaControl } from '../../core/ports/quota-control.js'
import type { Outdated, QuotaStore } from '../../core/ports/quota-store.js'
import type { KeyVersion, BanRules, Charge, Quota, QuotaRules, QuotaState, QuotaUsage, Verdict } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { decide, expiresAtMs, isBanned, isOutdated, refund, unban, toUsage } from '../../core/quota.js'
import { openShare, shareOfKnown, mergeStricter } from '../../core/quota-share.js'
import { minutePhaseSeconds } from '../../core/window.js'
import { ExpiringMap } from './expiring-map.js'

/** Longer than any replica remembers a record of a key. */
const ANNOUNCED_MS = 60_000

/** One replica's part of the quotas, while it cannot ask those that all share. */
export interface QuotaShare {
  /** Of how many replicas it is one, 1 or more. */
  readonly replicas: number
  /** What was last known of a key. */
  readonly known: (keyId: string) => QuotaState | undefined
}

const SOLE_REPLICA: QuotaShare = { replicas: 1, known: () => undefined }

/** The core's decision around a map. A process has one thread, so a decision is atomic by itself. */
export class MemoryQuotaStore implements QuotaStore, QuotaControl {
  readonly #states = new ExpiringMap<QuotaState>()
  readonly #announced = new ExpiringMap<number>()

  constructor(
    private readonly clock: Clock,
    private readonly share: QuotaShare = SOLE_REPLICA,
  ) {}

  /** How many keys it remembers. */
  get size(): number {
    return this.#states.size
  }

  async take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<Verdict | Outdated> {
    const at = this.#now(keyId)
    const stored = this.#stateOf(keyId, rules, at)
    const announced = this.#announced.get(keyId, at.nowMs) ?? 0
    if (isOutdated(stored, keyVersion, announced)) return { kind: 'outdated' }
    const { verdict, state } = decide(stored, rules, at)
    this.#keep(keyId, { ...state, version: keyVersion.version }, rules.ban, at)
    return verdict
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota> {
    const at = this.#now(keyId)
    const { quota, state } = refund(this.#stateOf(keyId, rules, at), charge, rules, at)
    this.#keep(keyId, state, rules.ban, at)
    return quota
  }

  async announce(keyId: string, version: number): Promise<void> {
    const nowMs = this.clock.nowMs()
    const announced = Math.max(version, this.#announced.get(keyId, nowMs) ?? 0)
    this.#announced.set(keyId, announced, nowMs + ANNOUNCED_MS, nowMs)
  }

  async usage(keyId: string, rules: QuotaRules): Promise<QuotaUsage> {
    const at = this.#now(keyId)
    return toUsage(this.#stateOf(keyId, rules, at), rules, at)
  }

  async unban(keyId: string): Promise<'lifted' | 'not-banned'> {
    const at = this.#now(keyId)
    const stored = this.#states.get(keyId, at.nowMs)
    if (!stored) return 'not-banned'
    // Without a ban nothing outlasts the windows.
    this.#keep(keyId, unban(stored), { forgetAfterMs: 0 }, at)
    return isBanned(stored, at) ? 'lifted' : 'not-banned'
  }

  #now(keyId: string): Instant {
    return { nowMs: this.clock.nowMs(), phaseSeconds: minutePhaseSeconds(keyId) }
  }

  #stateOf(keyId: string, rules: QuotaRules, at: Instant): QuotaState {
    const { replicas, known } = this.share
    const stored = this.#states.get(keyId, at.nowMs)
    const lastKnown = known(keyId)
    const share = lastKnown && shareOfKnown(lastKnown, rules, replicas)
    return openShare(stored && share ? mergeStricter(stored, share) : (stored ?? share), rules, at, replicas)
  }

  #keep(keyId: string, state: QuotaState, ban: Pick<BanRules, 'forgetAfterMs'>, { nowMs }: Instant): void {
    this.#states.set(keyId, state, expiresAtMs(state, ban), nowMs)
  }
}
