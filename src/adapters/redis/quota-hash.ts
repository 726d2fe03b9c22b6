import type { Clock } from '../../core/ports/clock.js'
import type { KeyVersion, QuotaRules, QuotaState, UsageDelta } from '../../core/quota.js'
import { countStrikesToBan } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { getMinutePhaseSeconds } from '../../core/window.js'
import type { QuotaBatcher, ScriptReply } from './quota-batcher.js'
import type { OutcomeName } from './quota-script.js'
import { OUTCOME_NAMES } from './quota-script.js'

/** The state in a reply, and the time of the reply on the clock that quota decisions use. For `take`, `done`: the request was charged; `banned`: it was rejected and started a ban. */
export interface StateReply {
  readonly outcome: 'done' | 'rejected' | 'banned' | 'stale'
  readonly at: Instant
  readonly state: QuotaState
}

/** `epochChanged`: Redis has lost data of the shard. `corrupt`: the hash is invalid, because something else has changed it. Nothing was done. */
export type QuotaReply = StateReply | { readonly outcome: 'epochChanged' | 'corrupt' }

/** Applied before the operation. */
export interface TakeOptions {
  /** The epoch that the caller knows. Without it, the epoch is not checked. */
  readonly epoch?: string | undefined
  readonly delta?: UsageDelta | undefined
  /** States of the key that the caller knows from elsewhere. The hash is merged with them. */
  readonly known?: readonly QuotaState[] | undefined
  /** Replaces a corrupt hash. */
  readonly isRepair?: boolean
  /** Announces that this replica restores what it knows, for this time. */
  readonly restoringMs?: number
}

/** `take` requires rules and a key version, `reconcile` and `peek` require rules, `announce` requires a key version. */
export interface ScriptArguments {
  readonly operation: 'take' | 'reconcile' | 'peek' | 'unban' | 'announce'
  /** See `packRules`. */
  readonly rules?: readonly number[]
  readonly keyVersion?: KeyVersion
  readonly options?: TakeOptions
  readonly phaseSeconds: number
  /** Replaces the clock of Redis. */
  readonly nowMs?: number | undefined
}

/** The quota hashes in Redis, one per API key. Errors of the batcher are passed on. */
export class QuotaHash {
  /** Without `clock`, decisions use the clock of the Redis server. */
  constructor(
    private readonly batcher: QuotaBatcher,
    private readonly clock?: Clock,
  ) {}

  /** Decides one request. */
  take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion, options: TakeOptions = {}): Promise<QuotaReply> {
    return this.#execute(keyId, { operation: 'take', rules: packRules(rules), keyVersion, options })
  }

  /** Adds usage that a replica granted locally, and what it knows. Does not decide a request. */
  reconcile(keyId: string, rules: QuotaRules, options: TakeOptions): Promise<QuotaReply> {
    return this.#execute(keyId, { operation: 'reconcile', rules: packRules(rules), options })
  }

  /** Returns the state without changing it. */
  peek(keyId: string, rules: QuotaRules, options: TakeOptions = {}): Promise<QuotaReply> {
    return this.#execute(keyId, { operation: 'peek', rules: packRules(rules), options })
  }

  /** The outcome is `rejected` if the key is not banned. */
  unban(keyId: string): Promise<QuotaReply> {
    return this.#execute(keyId, { operation: 'unban' })
  }

  /** Raises the key version to `version`. A lower version has no effect. */
  announce(keyId: string, version: number): Promise<QuotaReply> {
    return this.#execute(keyId, { operation: 'announce', keyVersion: { version } })
  }

  async #execute(keyId: string, args: Omit<ScriptArguments, 'phaseSeconds' | 'nowMs'>): Promise<QuotaReply> {
    const phaseSeconds = getMinutePhaseSeconds(keyId)
    // Keep the spread last. With a property after it, JSON.stringify takes three times as long.
    const json = JSON.stringify({ phaseSeconds, nowMs: this.clock?.nowMs(), ...args } satisfies ScriptArguments)
    return toQuotaReply(await this.batcher.execute(keyId, json), phaseSeconds)
  }
}

/** Returns the rules in the order in which the script unpacks them. */
function packRules(rules: QuotaRules): readonly number[] {
  const { limits, ban } = rules
  return [limits.minute, limits.day, countStrikesToBan(rules), ban.graceMs, ban.firstMs, ban.longestMs, ban.forgetAfterMs]
}

function toQuotaReply([outcome, nowMs = 0, ...values]: ScriptReply, phaseSeconds: number): QuotaReply {
  const name = OUTCOME_NAMES[outcome] as OutcomeName
  if (name === 'epochChanged' || name === 'corrupt') return { outcome: name }
  return { outcome: name, at: { nowMs, phaseSeconds }, state: toState(values) }
}

/** `values`: in the order of `FIELDS`. */
function toState(values: readonly number[]): QuotaState {
  const [minute = 0, minuteUsed = 0, day = 0, dayUsed = 0, strikes = 0, firstRejectionMs = 0] = values
  const [bannedUntilMs = 0, banLevel = 0, keyVersion = 0, unbannedAtMs = 0] = values.slice(6)
  const [window, used] = [
    { minute, day },
    { minute: minuteUsed, day: dayUsed },
  ]
  const state = { window, used, strikes, bannedUntilMs, banLevel, keyVersion, unbannedAtMs }
  return firstRejectionMs > 0 ? { ...state, firstRejectionMs } : state
}
