import type { Clock } from '../../core/ports/clock.js'
import type { KeyVersion, QuotaRules, QuotaState, UsageDelta } from '../../core/quota.js'
import { countStrikesToBan } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { getMinutePhaseSeconds } from '../../core/window.js'
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

/** The outcome, the time in milliseconds and the values of all FIELDS. */
type ScriptReply = readonly number[]

/** `args`: `ScriptArguments` as JSON. */
interface Call {
  readonly keyId: string
  readonly args: string
  readonly resolve: (reply: QuotaReply) => void
  readonly reject: (error: unknown) => void
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
  /** The calls of this turn, by shard. */
  readonly #calls = new Map<number, Call[]>()

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
    return new Promise((resolve, reject) => {
      const call = { keyId, args: JSON.stringify({ ...args, ...derived }), resolve, reject }
      if (this.#calls.size === 0) setImmediate(() => this.#sendAll())
      const shard = this.keys.getShard(keyId)
      const calls = this.#calls.get(shard)
      if (calls) calls.push(call)
      else this.#calls.set(shard, [call])
    })
  }

  #sendAll(): void {
    for (const [shard, calls] of this.#calls)
      for (let start = 0; start < calls.length; start += MAX_CALLS) void this.#send(shard, calls.slice(start, start + MAX_CALLS))
    this.#calls.clear()
  }

  async #send(shard: number, calls: readonly Call[]): Promise<void> {
    const groups = groupEqualCalls(calls)
    const firsts = groups.flatMap(([first]) => first ?? [])
    const keys = [this.keys.epoch(shard), ...firsts.map(({ keyId }) => this.keys.quota(keyId))]
    const args = `[${firsts.map((call) => call.args).join(',')}]`
    const counts = JSON.stringify(groups.map(({ length }) => length))
    try {
      const replies = await this.#script(keys.length, ...keys, args, counts)
      for (const [index, { keyId, resolve }] of groups.flat().entries()) resolve(toQuotaReply(keyId, replies[index] ?? []))
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }
}

/** Groups equal calls for a key, unless there is a different one in between. */
function groupEqualCalls(calls: readonly Call[]): Call[][] {
  const groups: Call[][] = []
  const lastByKey = new Map<string, Call[]>()
  for (const call of calls) {
    const last = lastByKey.get(call.keyId)
    if (last?.[0]?.args === call.args) {
      last.push(call)
    } else {
      const group = [call]
      lastByKey.set(call.keyId, group)
      groups.push(group)
    }
  }
  return groups
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
