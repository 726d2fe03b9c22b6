import type { ScriptArguments, TakeOptions } from '../../../src/adapters/redis/quota-hash.js'
import { FIELDS, OUTCOMES } from '../../../src/adapters/redis/quota-script.js'
import { mergeQuotaStates } from '../../../src/core/merge-quota-states.js'
import type { Decision, QuotaRules, QuotaState } from '../../../src/core/quota.js'
import { decide, expiresAtMs, hasStartedBan, isBanned, isStale, reconcile, rollForward, unban } from '../../../src/core/quota.js'
import type { Instant } from '../../../src/core/window.js'
import { NO_QUOTA_STATE } from '../builders.js'

/** The arguments of one operation. */
export interface QuotaScriptArguments extends TakeOptions {
  readonly operation: 'take' | 'reconcile' | 'peek' | 'unban' | 'announce'
  readonly rules?: QuotaRules
  readonly version?: number
  readonly readSince?: number
  readonly nowMs?: number | undefined
  readonly phaseSeconds: number
}

interface StoredHash {
  readonly state: QuotaState | 'corrupt'
  readonly expiresAtMs: number
}

/** The contents of a Redis server. The maps are replaced by copies in snapshots, and their values never change. */
export interface RedisData {
  readonly hashes: Map<string, StoredHash>
  readonly epochs: Map<string, string>
  /** The time of each registration, by the ID of the replica. */
  readonly replicas: Map<string, number>
  /** How long and until when a replica restores what it knows, by epoch marker. */
  readonly restoring: Map<string, { readonly ttlMs: number; readonly untilMs: number }>
}

/** What an operation did to a hash. */
export interface QuotaOperation {
  readonly key: string
  readonly args: QuotaScriptArguments
  readonly outcome: keyof typeof OUTCOMES
  readonly nowMs: number
  readonly state: QuotaState
}

const NO_RULES = { forgetAfterMs: 0 } as QuotaRules['ban']

export function anEmptyDatabase(): RedisData {
  return { hashes: new Map(), epochs: new Map(), replicas: new Map(), restoring: new Map() }
}

/** Does what the scripts of `QuotaHash` and `Heartbeat` do, with the functions of the core. Defects are planted by overriding its methods. */
export class ScriptModel {
  data = anEmptyDatabase()
  runId = 'run1'
  readonly operations: ((operation: QuotaOperation) => void)[] = []

  /** `nowMs`: the clock of the Redis server, Unix time in whole milliseconds. */
  constructor(readonly nowMs: () => number) {}

  /** Returns the replies as JSON. */
  quota(keyCount: number, epochKey: string, ...keysAndArgs: string[]): string {
    const keys = keysAndArgs.slice(0, keyCount - 1)
    const [operations, counts] = keysAndArgs.slice(keyCount - 1).map((json) => JSON.parse(json)) as [ScriptArguments[], number[]]
    const replies = operations.flatMap((sent, index) => {
      const args = toArguments(sent)
      return Array.from({ length: counts[index] ?? 0 }, () => this.#execute(keys[index] ?? '', epochKey, args))
    })
    return JSON.stringify(replies)
  }

  #execute(key: string, epochKey: string, args: QuotaScriptArguments): number[] {
    if (args.epoch !== undefined && this.isEpochChanged(args.epoch, this.data.epochs.get(epochKey))) return [OUTCOMES.epochChanged]
    if (args.restoringMs !== undefined)
      this.data.restoring.set(epochKey, { ttlMs: args.restoringMs, untilMs: this.nowMs() + args.restoringMs })
    const at = { nowMs: args.nowMs ?? this.nowMs(), phaseSeconds: args.phaseSeconds }
    const found = this.#read(key)
    if (found === 'corrupt' && args.isRepair !== true) return [OUTCOMES.corrupt]
    const stored = found === 'corrupt' || found === undefined ? NO_QUOTA_STATE : found
    const known = (args.known ?? []).reduce((state, each) => this.merge(state, each), stored)
    const { outcome, state, saved } = this.#run(args, known, at)
    if (saved) this.#save(key, found, saved, args, at.nowMs)
    for (const listener of this.operations) listener({ key, args, outcome, nowMs: at.nowMs, state })
    return [OUTCOMES[outcome], at.nowMs, ...toFields(state)]
  }

  heartbeat(keyCount: number, marker: string, ...[, replicaId, ttlMs]: string[]): [string, number, number, number] {
    const { epochs, replicas } = this.data
    const nowMs = this.nowMs()
    let epoch = epochs.get(marker) ?? ''
    if (epoch.split('/')[0] !== this.runId || toBeganMs(epoch) > nowMs) epoch = `${this.runId}/${nowMs}.000000`
    epochs.set(marker, epoch)
    if (keyCount > 1) {
      replicas.set(replicaId ?? '', nowMs)
      for (const [id, registeredMs] of replicas) if (registeredMs <= nowMs - Number(ttlMs)) replicas.delete(id)
    }
    const { ttlMs: restoringMs = 0, untilMs = 0 } = this.data.restoring.get(marker) ?? {}
    const isRestoring = nowMs < untilMs && untilMs <= nowMs + restoringMs
    return [epoch, nowMs - toBeganMs(epoch), keyCount > 1 ? replicas.size : 0, isRestoring ? 1 : 0]
  }

  corrupt(key: string): void {
    this.data.hashes.set(key, { state: 'corrupt', expiresAtMs: this.nowMs() + 86_400_000 })
  }

  /** The stored state, or undefined if there is none. */
  peek(key: string): QuotaState | undefined {
    const state = this.#read(key)
    return state === 'corrupt' ? undefined : state
  }

  protected isEpochChanged(known: string, stored: string | undefined): boolean {
    return known !== stored
  }

  protected merge(stored: QuotaState, known: QuotaState): QuotaState {
    return mergeQuotaStates(stored, known)
  }

  protected decide(stored: QuotaState, rules: QuotaRules, at: Instant): Decision {
    return decide(stored, rules, at)
  }

  protected rollForward(stored: QuotaState, ban: QuotaRules['ban'], at: Instant): QuotaState {
    return rollForward(stored, ban, at)
  }

  /** Returns the state in the reply, and the state to save. */
  #run(args: QuotaScriptArguments, stored: QuotaState, at: Instant): Pick<QuotaOperation, 'outcome' | 'state'> & { saved?: QuotaState } {
    const { operation, rules, version = 0, delta } = args
    const state = this.rollForward(stored, rules?.ban ?? NO_RULES, at)
    if (operation === 'peek') return { outcome: 'done', state }
    if (operation === 'unban') {
      const saved = unban(state, at.nowMs)
      return { outcome: isBanned(state, at) ? 'done' : 'rejected', state: saved, saved }
    }
    if (operation === 'announce') return { outcome: 'done', state, saved: { ...stored, keyVersion: Math.max(stored.keyVersion, version) } }
    if (!rules) throw new Error(`The operation ${operation} requires rules`)
    if (operation === 'take' && isStale({ version, readSince: args.readSince ?? 0 }, state.keyVersion)) return { outcome: 'stale', state }
    const reported = delta ? reconcile(state, rules, at, delta) : state
    if (operation === 'reconcile') return { outcome: 'done', state: reported, saved: reported }
    const decision = this.decide(reported, rules, at)
    const saved = { ...decision.state, keyVersion: version }
    const rejected = hasStartedBan(state, saved) ? 'banned' : 'rejected'
    return { outcome: decision.verdict.kind === 'admitted' ? 'done' : rejected, state: saved, saved }
  }

  #read(key: string): StoredHash['state'] | undefined {
    const hash = this.data.hashes.get(key)
    return hash && hash.expiresAtMs > this.nowMs() ? hash.state : undefined
  }

  #save(key: string, before: StoredHash['state'] | undefined, state: QuotaState, { rules }: QuotaScriptArguments, nowMs: number): void {
    const last = this.data.hashes.get(key)
    const isSameExpiry = last && before !== undefined && before !== 'corrupt' && hasSameExpiry(before, state)
    const untilMs = isSameExpiry ? last.expiresAtMs : nowMs + Math.max(expiresAtMs(state, rules?.ban ?? NO_RULES) - nowMs, 60_000)
    this.data.hashes.set(key, { state, expiresAtMs: untilMs })
  }
}

function toBeganMs(epoch: string): number {
  return Number(/\/(\d+)\./.exec(epoch)?.[1])
}

function hasSameExpiry(one: QuotaState, other: QuotaState): boolean {
  const toParts = ({ window, bannedUntilMs, unbannedAtMs }: QuotaState) =>
    [window.minute, window.day, bannedUntilMs, unbannedAtMs].join(' ')
  return toParts(one) === toParts(other)
}

function toFields({ window, used, firstRejectionMs = 0, ...same }: QuotaState): number[] {
  const fields = { minute: window.minute, minuteUsed: used.minute, day: window.day, dayUsed: used.day, firstRejectionMs, ...same }
  return (Object.keys(FIELDS) as (keyof typeof FIELDS)[]).map((name) => fields[name])
}

function toArguments({ rules, keyVersion, options, ...same }: ScriptArguments): QuotaScriptArguments {
  return { ...same, ...keyVersion, ...options, ...(rules ? { rules: toRules(rules) } : {}) }
}

function toRules([
  minute = 0,
  day = 0,
  minStrikes = 0,
  graceMs = 0,
  firstMs = 0,
  longestMs = 0,
  forgetAfterMs = 0,
]: readonly number[]): QuotaRules {
  return { limits: { minute, day }, mode: 'enforce', ban: { graceMs, minStrikes, firstMs, longestMs, forgetAfterMs } }
}
