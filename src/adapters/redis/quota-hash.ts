import type { Clock } from '../../core/ports/clock.js'
import type { KeyVersion, QuotaRules, QuotaState, UsageDelta } from '../../core/quota.js'
import { countStrikesToBan } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { getMinutePhaseSeconds } from '../../core/window.js'
import { FIELDS, OUTCOMES, QUOTA_SCRIPT } from './quota-script.js'
import type { RedisClient } from './redis-client.js'

/** The state in a reply, and the time of the reply on the clock that quota decisions use. */
export interface StateReply {
  readonly at: Instant
  readonly state: QuotaState
}

export interface TakeReply extends StateReply {
  readonly outcome: 'charged' | 'rejected' | 'stale'
}

type Outcome = (typeof OUTCOMES)[keyof typeof OUTCOMES]

/** The properties that each operation requires. `take`: rules and key version. `reconcile`: rules and delta. `announce`: version. `unban`: none. */
interface ScriptArguments extends Partial<KeyVersion> {
  readonly operation: 'take' | 'reconcile' | 'unban' | 'announce'
  readonly rules?: QuotaRules
  readonly delta?: UsageDelta | undefined
}

type ScriptReply = [outcome: Outcome, nowMs: number, ...fields: number[]]
type Script = (key: string, args: string) => Promise<ScriptReply>

const OUTCOME_NAMES = { [OUTCOMES.rejected]: 'rejected', [OUTCOMES.done]: 'charged', [OUTCOMES.stale]: 'stale' } as const
const FIELD_NAMES = Object.keys(FIELDS) as (keyof typeof FIELDS)[]

/** Commands are defined for a whole client, so this name must differ from those of other scripts. */
const COMMAND = 'petstoreQuota'

/** The quota hashes in Redis, one per API key. Each method makes one round trip. Errors of the Redis client are passed on. */
export class QuotaHash {
  readonly #script: Script

  /** Without `clock`, decisions use the clock of the Redis server. */
  constructor(
    private readonly client: RedisClient,
    private readonly clock?: Clock,
  ) {
    client.defineCommand(COMMAND, { numberOfKeys: 1, lua: QUOTA_SCRIPT })
    const command = (client as unknown as Record<typeof COMMAND, Script>)[COMMAND]
    this.#script = command.bind(client)
  }

  async take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion, delta?: UsageDelta): Promise<TakeReply> {
    const [outcome, ...reply] = await this.#run(keyId, { operation: 'take', rules, delta, ...keyVersion })
    return { outcome: OUTCOME_NAMES[outcome], ...toStateReply(keyId, reply) }
  }

  /** Adds usage that a replica granted locally. Does not decide a request. */
  async reconcile(keyId: string, rules: QuotaRules, delta: UsageDelta): Promise<StateReply> {
    const [, ...reply] = await this.#run(keyId, { operation: 'reconcile', rules, delta })
    return toStateReply(keyId, reply)
  }

  /** Returns the stored state. Its windows may have ended: `rollForward` in the core returns the current state. */
  async peek(keyId: string): Promise<StateReply> {
    const clockMs = this.clock?.nowMs()
    // In a Redis Cluster, the client sends the whole transaction to the node that holds the hash.
    const results = await this.client
      .multi()
      .time()
      .hmget(quotaKey(keyId), ...Object.values(FIELDS))
      .exec()
    const [[seconds, micros] = [], fields = []] = (results ?? []).map(([error, value]) => {
      if (error) throw error
      return (value as (string | null)[]).map(Number)
    })
    const serverMs = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
    return toStateReply(keyId, [clockMs ?? serverMs, ...fields])
  }

  async unban(keyId: string): Promise<'lifted' | 'not-banned'> {
    const [outcome] = await this.#run(keyId, { operation: 'unban' })
    return outcome === OUTCOMES.done ? 'lifted' : 'not-banned'
  }

  /** Raises the key version to `version`. A lower version has no effect. */
  async announce(keyId: string, version: number): Promise<void> {
    await this.#run(keyId, { operation: 'announce', version })
  }

  /** Runs the script in the slot of `hashTag`, on a hash that belongs to no API key. Fails whenever decisions fail. */
  async probe(hashTag = 'none'): Promise<void> {
    await this.#run(hashTag, { operation: 'announce', version: 1 }, `probe:{${hashTag}}`)
  }

  #run(keyId: string, args: ScriptArguments, hash = quotaKey(keyId)): Promise<ScriptReply> {
    const derived = {
      nowMs: this.clock?.nowMs(),
      phaseSeconds: getMinutePhaseSeconds(keyId),
      strikesToBan: args.rules && countStrikesToBan(args.rules),
    }
    return this.#script(hash, JSON.stringify({ ...args, ...derived }))
  }
}

/** A Redis Cluster places keys with the same hash tag, the part in braces, together. */
export function quotaKey(keyId: string): string {
  return `quota:{${keyId}}`
}

function toStateReply(keyId: string, [nowMs = 0, ...values]: readonly number[]): StateReply {
  const fields = Object.fromEntries(FIELD_NAMES.map((name, index) => [name, values[index] ?? 0])) as Record<keyof typeof FIELDS, number>
  const { minute, minuteUsed, day, dayUsed, firstRejectionMs, ...same } = fields
  return {
    at: { nowMs, phaseSeconds: getMinutePhaseSeconds(keyId) },
    state: {
      window: { minute, day },
      used: { minute: minuteUsed, day: dayUsed },
      ...(firstRejectionMs > 0 ? { firstRejectionMs } : {}),
      ...same,
    },
  }
}
