import type { Clock } from '../../core/ports/clock.js'
import type { KeyVersion, QuotaRules, QuotaState, UsageDelta } from '../../core/quota.js'
import { countStrikesToBan } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { getMinutePhaseSeconds } from '../../core/window.js'
import type { ScriptReply } from './quota-batcher.js'
import { QuotaBatcher } from './quota-batcher.js'
import { FIELDS, OUTCOMES } from './quota-script.js'
import type { RedisClient } from './redis-client.js'
import type { RedisKeys } from './redis-keys.js'

/** The state in a reply, and the time of the reply on the clock that quota decisions use. `done` for `take`: the request was charged. */
export interface StateReply {
  readonly outcome: 'done' | 'rejected' | 'stale'
  readonly at: Instant
  readonly state: QuotaState
}

/**
 * Nothing was done. `epochChanged`: Redis has lost data of the shard. `corrupt`: the hash of the key is unusable, because something else has
 * changed it.
 */
export interface UndecidedReply {
  readonly outcome: 'epochChanged' | 'corrupt'
}

export type QuotaReply = StateReply | UndecidedReply

/** Applies before a decision. */
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

/** The properties that each operation requires. `take`: rules and version. `reconcile`, `peek`: rules. `announce`: version. `unban`: none. */
interface ScriptArguments extends TakeOptions, Partial<KeyVersion> {
  readonly operation: 'take' | 'reconcile' | 'peek' | 'unban' | 'announce'
  readonly rules?: QuotaRules
}

const FIELD_NAMES = Object.keys(FIELDS) as (keyof typeof FIELDS)[]
const OUTCOME_NAMES = Object.keys(OUTCOMES) as (keyof typeof OUTCOMES)[]
/** The quota hashes in Redis, one per API key. Errors of the Redis client are passed on. */
export class QuotaHash {
  readonly #batcher: QuotaBatcher

  /** Without `clock`, decisions use the clock of the Redis server. */
  constructor(
    client: RedisClient,
    keys: RedisKeys,
    private readonly clock?: Clock,
  ) {
    this.#batcher = new QuotaBatcher(client, keys)
  }

  /** Decides one request. */
  take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion, options: TakeOptions = {}): Promise<QuotaReply> {
    return this.#call(keyId, { operation: 'take', rules, ...keyVersion, ...options })
  }

  /** Adds usage that a replica granted locally, and what it knows. Does not decide a request. */
  reconcile(keyId: string, rules: QuotaRules, options: TakeOptions): Promise<QuotaReply> {
    return this.#call(keyId, { operation: 'reconcile', rules, ...options })
  }

  /** Returns the state without changing it. */
  peek(keyId: string, rules: QuotaRules): Promise<QuotaReply> {
    return this.#call(keyId, { operation: 'peek', rules })
  }

  /** The outcome is `rejected` if the key is not banned. */
  unban(keyId: string): Promise<QuotaReply> {
    return this.#call(keyId, { operation: 'unban' })
  }

  /** Raises the key version to `version`. A lower version has no effect. */
  announce(keyId: string, version: number): Promise<QuotaReply> {
    return this.#call(keyId, { operation: 'announce', version })
  }

  async #call(keyId: string, args: ScriptArguments): Promise<QuotaReply> {
    const derived = {
      nowMs: this.clock?.nowMs(),
      phaseSeconds: getMinutePhaseSeconds(keyId),
      strikesToBan: args.rules && countStrikesToBan(args.rules),
    }
    return toQuotaReply(keyId, await this.#batcher.execute(keyId, JSON.stringify({ ...args, ...derived })))
  }
}

function toQuotaReply(keyId: string, [outcome = -1, nowMs = 0, ...values]: ScriptReply): QuotaReply {
  const name = OUTCOME_NAMES[outcome]
  if (!name) throw new Error(`The quota script returned an unknown outcome: ${outcome}`)
  if (name === 'epochChanged' || name === 'corrupt') return { outcome: name }
  return { outcome: name, at: { nowMs, phaseSeconds: getMinutePhaseSeconds(keyId) }, state: toState(values) }
}

function toState(values: readonly number[]): QuotaState {
  const fields = {} as Record<keyof typeof FIELDS, number>
  for (const [index, name] of FIELD_NAMES.entries()) fields[name] = values[index] ?? 0
  const { minute, minuteUsed, day, dayUsed, firstRejectionMs, ...same } = fields
  return {
    window: { minute, day },
    used: { minute: minuteUsed, day: dayUsed },
    ...(firstRejectionMs > 0 ? { firstRejectionMs } : {}),
    ...same,
  }
}
