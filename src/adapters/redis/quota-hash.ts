import type { KeyVersion, Charge, QuotaRules, QuotaState, UsageDelta } from '../../core/quota.js'
import type { Instant } from '../../core/window.js'
import { strikesToBan } from '../../core/quota.js'
import { minutePhaseSeconds } from '../../core/window.js'
import type { Clock } from '../../core/ports/clock.js'
import { QUOTA_SCRIPT } from './quota-script.js'
import type { RedisClient } from './redis-client.js'

/** What the script became of a request, the instant by the clock that decided, and the state afterwards. */
export interface QuotaReply {
  readonly became: 'charged' | 'refused' | 'outdated'
  readonly at: Instant
  readonly state: QuotaState
}

type Became = 0 | 1 | 2
type ScriptReply = [Became, ...number[]]
type Command = (key: string, ...args: (string | number)[]) => Promise<ScriptReply>

/** A name of its own: commands are defined for a whole client, and a second one of a name would replace the first. */
const COMMAND = 'petstoreQuota'
const OUTCOMES = ['refused', 'charged', 'outdated'] as const
const NO_REPORT: UsageDelta = { window: { minute: -1, day: -1 }, strikes: 0, used: { minute: 0, day: 0 } }
const NO_RULES: QuotaRules = {
  limits: { minute: 0, day: 0 },
  ban: { graceMs: 0, minStrikes: 0, firstMs: 0, longestMs: 0, forgetAfterMs: 0 },
  mode: 'enforce',
}

/** The hash of each key in Redis and the one script that works on it. Each method is one round trip, and rejects as the client does. */
export class QuotaHash {
  readonly #run: Command

  /** Without a clock the server's own decides. */
  constructor(
    client: RedisClient,
    private readonly clock?: Clock,
  ) {
    client.defineCommand(COMMAND, { numberOfKeys: 1, lua: QUOTA_SCRIPT })
    const command = (client as unknown as Record<typeof COMMAND, Command>)[COMMAND]
    this.#run = command.bind(client)
  }

  take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion, report?: UsageDelta): Promise<QuotaReply> {
    return this.#call('take', keyId, rules, keyVersion, report)
  }

  /** Adds what a replica decided by itself, and decides nothing. */
  reconcile(keyId: string, rules: QuotaRules, report: UsageDelta): Promise<QuotaReply> {
    return this.#call('reconcile', keyId, rules, undefined, report)
  }

  refund(keyId: string, rules: QuotaRules, charge: Charge): Promise<QuotaReply> {
    return this.reconcile(keyId, rules, { window: charge, strikes: 0, used: { minute: -1, day: -1 } })
  }

  peek(keyId: string, rules: QuotaRules): Promise<QuotaReply> {
    return this.#call('peek', keyId, rules)
  }

  /** `charged` when a ban was lifted. */
  unban(keyId: string): Promise<QuotaReply> {
    return this.#call('unban', keyId)
  }

  announce(keyId: string, version: number): Promise<QuotaReply> {
    return this.#call('announce', keyId, NO_RULES, { version })
  }

  /** Runs the script on a hash that is nobody's, in the slot of `keyId`: what would fail decisions fails it too. */
  probe(keyId = 'nobody'): Promise<QuotaReply> {
    return this.#call('announce', keyId, NO_RULES, { version: 1 }, NO_REPORT, `probe:{${keyId}}`)
  }

  async #call(
    what: string,
    keyId: string,
    rules = NO_RULES,
    keyVersion: KeyVersion = { version: 0 },
    report = NO_REPORT,
    hash = quotaKey(keyId),
  ): Promise<QuotaReply> {
    const { limits, ban } = rules
    const phaseSeconds = minutePhaseSeconds(keyId)
    const [became, nowMs = 0, ...fields] = await this.#run(
      hash,
      what,
      this.clock?.nowMs() ?? 0,
      phaseSeconds,
      limits.minute,
      limits.day,
      ban.graceMs,
      strikesToBan(rules),
      ban.firstMs,
      ban.longestMs,
      ban.forgetAfterMs,
      keyVersion.version,
      keyVersion.justRead ? 1 : 0,
      report.window.minute,
      report.window.day,
      report.strikes,
      report.used.minute,
      report.used.day,
    )
    return { became: OUTCOMES[became], at: { nowMs, phaseSeconds }, state: stateOf(fields) }
  }
}

/** Braces: what a Redis Cluster places together. */
export function quotaKey(keyId: string): string {
  return `quota:{${keyId}}`
}

function stateOf([minute = 0, minuteUsed = 0, day = 0, dayUsed = 0, strikes = 0, firstRejectionMs = 0, ...rest]: number[]): QuotaState {
  const [bannedUntilMs = 0, banLevel = 0, version = 0] = rest
  return {
    window: { minute, day },
    used: { minute: minuteUsed, day: dayUsed },
    strikes,
    ...(firstRejectionMs > 0 ? { firstRejectionMs } : {}),
    bannedUntilMs,
    banLevel,
    version,
  }
}
