import type { Clock } from '../../core/ports/clock.js'
import type { QuotaControl } from '../../core/ports/quota-control.js'
import type { QuotaStore, StaleKeyRecord } from '../../core/ports/quota-store.js'
import type { UsageReader } from '../../core/ports/usage-reader.js'
import type { BanRules, Charge, KeyVersion, Quota, QuotaRules, QuotaState, QuotaUsage, Verdict } from '../../core/quota.js'
import { decide, expiresAtMs, hasStartedBan, isBanned, isStale, refund, toUsage, unban } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { getMinutePhaseSeconds } from '../../core/window.js'
import { ExpiringMap } from './expiring-map.js'

/** Longer than any replica caches the record of a key. */
const ANNOUNCED_MS = 60_000

/** Applies the rules of the core to states in a map. A decision is atomic, because it is synchronous and a process has one thread. */
export class MemoryQuotaStore implements QuotaStore, QuotaControl, UsageReader {
  readonly #states = new ExpiringMap<QuotaState>()
  readonly #announcedVersions = new ExpiringMap<number>()

  /** `onBan`: called for each request that starts a ban. */
  constructor(
    private readonly clock: Clock,
    private readonly onBan: () => void = () => undefined,
  ) {}

  /** Number of keys with a state. */
  get size(): number {
    return this.#states.size
  }

  async take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<Verdict | StaleKeyRecord> {
    const at = this.#now(keyId)
    const stored = this.#states.get(keyId, at.nowMs)
    const knownVersion = this.#getKnownVersion(keyId, at)
    if (isStale(keyVersion, knownVersion)) return { kind: 'stale', knownVersion }
    const { verdict, state } = decide(stored, rules, at)
    if (hasStartedBan(stored, state)) this.onBan()
    this.#keep(keyId, { ...state, keyVersion: keyVersion.version }, rules.ban, at)
    return verdict
  }

  async refund(keyId: string, charge: Charge, rules: QuotaRules): Promise<Quota> {
    const at = this.#now(keyId)
    const { quota, state } = refund(this.#states.get(keyId, at.nowMs), charge, rules, at)
    this.#keep(keyId, state, rules.ban, at)
    return quota
  }

  async readUsage(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<QuotaUsage | StaleKeyRecord> {
    const knownVersion = this.#getKnownVersion(keyId, this.#now(keyId))
    return isStale(keyVersion, knownVersion) ? { kind: 'stale', knownVersion } : this.usage(keyId, rules)
  }

  async announce(keyId: string, version: number): Promise<void> {
    const nowMs = this.clock.nowMs()
    const announced = Math.max(version, this.#announcedVersions.get(keyId, nowMs) ?? 0)
    this.#announcedVersions.set(keyId, announced, nowMs + ANNOUNCED_MS, nowMs)
  }

  async usage(keyId: string, rules: QuotaRules): Promise<QuotaUsage> {
    const at = this.#now(keyId)
    return toUsage(this.#states.get(keyId, at.nowMs), rules, at)
  }

  async unban(keyId: string): Promise<'lifted' | 'not-banned'> {
    const at = this.#now(keyId)
    const stored = this.#states.get(keyId, at.nowMs)
    if (!stored) return 'not-banned'
    // Without a ban, the state expires when its windows end.
    this.#keep(keyId, unban(stored, at.nowMs), { forgetAfterMs: 0 }, at)
    return isBanned(stored, at) ? 'lifted' : 'not-banned'
  }

  #now(keyId: string): Instant {
    return { nowMs: this.clock.nowMs(), phaseSeconds: getMinutePhaseSeconds(keyId) }
  }

  #getKnownVersion(keyId: string, { nowMs }: Instant): number {
    return Math.max(this.#states.get(keyId, nowMs)?.keyVersion ?? 0, this.#announcedVersions.get(keyId, nowMs) ?? 0)
  }

  #keep(keyId: string, state: QuotaState, ban: Pick<BanRules, 'forgetAfterMs'>, { nowMs }: Instant): void {
    this.#states.set(keyId, state, expiresAtMs(state, ban), nowMs)
  }
}
