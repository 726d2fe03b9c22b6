import type { Clock } from '../../core/ports/clock.js'
import type { KeyVersion, QuotaRules, QuotaState, UsageDelta } from '../../core/quota.js'
import { strikesToBan } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { minutePhaseSeconds } from '../../core/window.js'
import { ARGUMENTS, FIELDS, OUTCOMES, QUOTA_SCRIPT } from './quota-script.js'
import type { RedisClient } from './redis-client.js'

/** A state, and the instant at which Redis had it, by the clock that decides. */
export interface StateReply {
  readonly at: Instant
  readonly state: QuotaState
}

export interface TakeReply extends StateReply {
  readonly outcome: 'charged' | 'rejected' | 'stale'
}

type Outcome = (typeof OUTCOMES)[keyof typeof OUTCOMES]
type ScriptArguments = Readonly<Record<(typeof ARGUMENTS)[number], number>>
type ScriptReply = [outcome: Outcome, nowMs: number, ...fields: number[]]
type Script = (key: string, operation: string, ...args: number[]) => Promise<ScriptReply>

/** Commands are defined for a whole client, so this name must differ from those of other scripts. */
const COMMAND = 'petstoreQuota'

const NO_ARGUMENTS = Object.fromEntries(ARGUMENTS.map((name) => [name, 0])) as ScriptArguments

/** The hash of each key in Redis. Each method is one round trip and rejects with the error of the client. */
export class QuotaHash {
  readonly #script: Script

  /** Without a clock, the server's own clock decides. */
  constructor(
    private readonly client: RedisClient,
    private readonly clock?: Clock,
  ) {
    client.defineCommand(COMMAND, { numberOfKeys: 1, lua: QUOTA_SCRIPT })
    const command = (client as unknown as Record<typeof COMMAND, Script>)[COMMAND]
    this.#script = command.bind(client)
  }

  async take(keyId: string, rules: QuotaRules, { version, justRead }: KeyVersion, delta?: UsageDelta): Promise<TakeReply> {
    const args = { ...fromRules(rules), ...fromDelta(delta), keyVersion: version, justRead: justRead ? 1 : 0 }
    const [outcome, ...reply] = await this.#run('take', keyId, args)
    const outcomes = { [OUTCOMES.rejected]: 'rejected', [OUTCOMES.done]: 'charged', [OUTCOMES.stale]: 'stale' } as const
    return { outcome: outcomes[outcome], ...toStateReply(keyId, reply) }
  }

  /** Adds what a replica decided by itself. Decides no request. */
  async reconcile(keyId: string, rules: QuotaRules, delta: UsageDelta): Promise<StateReply> {
    const [, ...reply] = await this.#run('reconcile', keyId, { ...fromRules(rules), ...fromDelta(delta) })
    return toStateReply(keyId, reply)
  }

  /** Returns the state as it is stored: `rollForward` of the core applies to it. */
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
    const [outcome] = await this.#run('unban', keyId)
    return outcome === OUTCOMES.done ? 'lifted' : 'not-banned'
  }

  /** Raises the key version to `version`. A lower version has no effect. */
  async announce(keyId: string, version: number): Promise<void> {
    await this.#run('announce', keyId, { keyVersion: version })
  }

  /** Runs the script in the slot of `hashTag`, on a hash of no key: it fails whenever decisions fail. */
  async probe(hashTag = 'none'): Promise<void> {
    await this.#run('announce', hashTag, { keyVersion: 1 }, `probe:{${hashTag}}`)
  }

  #run(operation: string, keyId: string, args: Partial<ScriptArguments> = {}, hash = quotaKey(keyId)): Promise<ScriptReply> {
    const clock = { nowMs: this.clock?.nowMs() ?? 0, phaseSeconds: minutePhaseSeconds(keyId) }
    const all: ScriptArguments = { ...NO_ARGUMENTS, ...args, ...clock }
    return this.#script(hash, operation, ...ARGUMENTS.map((name) => all[name]))
  }
}

/** A Redis Cluster places keys with the same hash tag, the part in braces, together. */
export function quotaKey(keyId: string): string {
  return `quota:{${keyId}}`
}

function fromRules(rules: QuotaRules): Partial<ScriptArguments> {
  const { limits, ban } = rules
  return {
    minuteLimit: limits.minute,
    dayLimit: limits.day,
    graceMs: ban.graceMs,
    strikesToBan: strikesToBan(rules),
    firstBanMs: ban.firstMs,
    longestBanMs: ban.longestMs,
    forgetAfterMs: ban.forgetAfterMs,
  }
}

/** Without a delta, its windows are 0 and therefore over. */
function fromDelta(delta?: UsageDelta): Partial<ScriptArguments> {
  if (!delta) return {}
  const { window, strikes, used } = delta
  return {
    deltaMinute: window.minute,
    deltaDay: window.day,
    deltaStrikes: strikes,
    deltaMinuteUsed: used.minute,
    deltaDayUsed: used.day,
  }
}

function toStateReply(keyId: string, [nowMs = 0, ...values]: readonly number[]): StateReply {
  const names = Object.keys(FIELDS) as (keyof typeof FIELDS)[]
  const fields = Object.fromEntries(names.map((name, index) => [name, values[index] ?? 0])) as Record<keyof typeof FIELDS, number>
  const { minute, minuteUsed, day, dayUsed, firstRejectionMs, ...same } = fields
  return {
    at: { nowMs, phaseSeconds: minutePhaseSeconds(keyId) },
    state: {
      window: { minute, day },
      used: { minute: minuteUsed, day: dayUsed },
      ...(firstRejectionMs > 0 ? { firstRejectionMs } : {}),
      ...same,
    },
  }
}
