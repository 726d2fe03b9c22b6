import DataLoader from 'dataloader'
import type { Clock } from '../../core/ports/clock.js'
import type { KeyVersion, QuotaRules, QuotaState, UsageDelta } from '../../core/quota.js'
import { countStrikesToBan } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { getMinutePhaseSeconds } from '../../core/window.js'
import { atEndOfTurn } from './end-of-turn.js'
import { FIELDS, OUTCOMES, QUOTA_SCRIPT } from './quota-script.js'
import type { RedisClient } from './redis-client.js'
import { defineScript } from './redis-client.js'
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

/** `values`: of all FIELDS. */
type ScriptReply = [outcome: number, nowMs: number, ...values: number[]]

/** One of the calls that are sent together. `args`: `ScriptArguments` as JSON. */
interface Call {
  readonly keyId: string
  readonly args: string
}

/** Equal calls for a key, which the script executes one after the other. */
interface RepeatedCall extends Call {
  /** The indexes of the calls. */
  readonly indexes: number[]
}

const FIELD_NAMES = Object.keys(FIELDS) as (keyof typeof FIELDS)[]
const OUTCOME_NAMES = Object.keys(OUTCOMES) as (keyof typeof OUTCOMES)[]
/** The script blocks Redis for about a millisecond when it executes this number of calls. */
const MAX_CALLS = 100

/**
 * The quota hashes in Redis, one per API key. Calls that are made in one turn of the event loop share one round trip. Redis executes the calls
 * for a key in their order. Errors of the Redis client are passed on.
 */
export class QuotaHash {
  readonly #script: (keyCount: number, ...keysAndArgs: string[]) => Promise<ScriptReply[]>
  /** By shard. */
  readonly #loaders = new Map<number, DataLoader<Call, QuotaReply>>()

  /** Without `clock`, decisions use the clock of the Redis server. */
  constructor(
    client: RedisClient,
    private readonly keys: RedisKeys,
    private readonly clock?: Clock,
  ) {
    this.#script = defineScript(client, 'petstoreQuota', { lua: QUOTA_SCRIPT })
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

  #call(keyId: string, args: ScriptArguments): Promise<QuotaReply> {
    const derived = {
      nowMs: this.clock?.nowMs(),
      phaseSeconds: getMinutePhaseSeconds(keyId),
      strikesToBan: args.rules && countStrikesToBan(args.rules),
    }
    return this.#getLoader(this.keys.getShard(keyId)).load({ keyId, args: JSON.stringify({ ...args, ...derived }) })
  }

  #getLoader(shard: number): DataLoader<Call, QuotaReply> {
    let loader = this.#loaders.get(shard)
    if (!loader) {
      const options = { cache: false, maxBatchSize: MAX_CALLS, batchScheduleFn: atEndOfTurn }
      loader = new DataLoader((calls: readonly Call[]) => this.#runScript(shard, calls), options)
      this.#loaders.set(shard, loader)
    }
    return loader
  }

  async #runScript(shard: number, calls: readonly Call[]): Promise<QuotaReply[]> {
    const repeated = joinRepeated(calls)
    const keys = [this.keys.epoch(shard), ...repeated.map(({ keyId }) => this.keys.quota(keyId))]
    const args = `[${repeated.map((call) => call.args).join(',')}]`
    const counts = JSON.stringify(repeated.map(({ indexes }) => indexes.length))
    const replies = await this.#script(keys.length, ...keys, args, counts)
    const results: QuotaReply[] = []
    for (const [position, index] of repeated.flatMap(({ indexes }) => indexes).entries()) {
      results[index] = toQuotaReply(calls[index]?.keyId ?? '', replies[position] ?? [-1, 0])
    }
    return results
  }
}

/** Joins equal calls for a key, unless there is a different one in between. */
function joinRepeated(calls: readonly Call[]): RepeatedCall[] {
  const repeated: RepeatedCall[] = []
  const lastByKey = new Map<string, RepeatedCall>()
  for (const [index, call] of calls.entries()) {
    const last = lastByKey.get(call.keyId)
    if (last?.args === call.args) {
      last.indexes.push(index)
    } else {
      const next = { ...call, indexes: [index] }
      lastByKey.set(call.keyId, next)
      repeated.push(next)
    }
  }
  return repeated
}

function toQuotaReply(keyId: string, [outcome, nowMs, ...values]: ScriptReply): QuotaReply {
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
