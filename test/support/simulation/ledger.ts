import type { Charge, QuotaRules, QuotaState, UsageDelta, Verdict } from '../../../src/core/quota.js'
import { isBanned } from '../../../src/core/quota.js'
import type { WindowName, WindowNumbers } from '../../../src/core/window.js'
import type { QuotaOperation } from './script-model.js'
import type { SimulatedReplica } from './simulated-replica.js'

const WINDOWS = ['minute', 'day'] as const

/** What happened to a key in one window. */
class WindowLedger {
  /** Requests that Redis charged, and refunds that it counted. */
  charged = 0
  refunded = 0
  /** Usage that replicas reported to Redis. */
  reported = 0
  /** The usage in Redis after the last operation. */
  used = 0
  /** Requests that Redis had counted and that no replica restored. */
  forgotten = 0
  /** As far as clients know: requests that were admitted, and those that were refunded. */
  admitted = 0
  refundCalls = 0
  admittedLocally = 0
  /** Requests that were admitted locally after Redis did not respond. They are not reported. */
  maybeCounted = 0
  /** Other requests that were admitted locally and may not have been reported. */
  unreported = 0
  /** By replica: `admitted` counts requests that it admitted locally. `granted` excludes those that it refunded. `unreported` may never be reported. */
  readonly shares = new Map<string, { admitted: number; granted: number; unreported: number; share: number }>()
  beforeLoss: { readonly used: number; readonly refunded: number; readonly reported: number } | undefined

  constructor(
    readonly keyId: string,
    readonly name: WindowName,
    readonly number: number,
    readonly limit: number,
  ) {}

  get bound(): number {
    return this.limit + this.forgotten + [...this.shares.values()].reduce((sum, { share }) => sum + share, 0)
  }

  /** `used` without the reports and refunds since then. */
  countWithout(used: number, { refunded, reported }: Pick<WindowLedger, 'refunded' | 'reported'>): number {
    return used - (this.reported - reported) + (this.refunded - refunded)
  }

  /** Redis is about to lose data. */
  noteLoss(): void {
    const { refunded, reported, beforeLoss } = this
    // Data may be lost again before it is restored.
    const used = beforeLoss ? beforeLoss.used + (reported - beforeLoss.reported) - (refunded - beforeLoss.refunded) : this.used
    this.beforeLoss = { used, refunded, reported }
  }

  /** Requests that Redis had counted before it lost data, and that were not restored. */
  countForgotten(used: number): number {
    return this.beforeLoss ? Math.max(0, this.beforeLoss.used - this.countWithout(used, this.beforeLoss)) : 0
  }

  describe(): string {
    const shares = [...this.shares].map(([replica, { granted, share }]) => `${replica} ${granted} of ${share}`)
    const { keyId, name, number, limit, charged, refunded, reported, used, forgotten, admitted, refundCalls, admittedLocally } = this
    return `${JSON.stringify({ keyId, name, number, limit, charged, refunded, reported, used, forgotten, admitted, refundCalls, admittedLocally, maybeCounted: this.maybeCounted, unreported: this.unreported })} shares: ${shares.join(', ')}`
  }
}

/** Redis lost data. */
interface Loss {
  /** What each replica knew that can restore it in time. */
  readonly known: Map<string, ReadonlyMap<string, QuotaState>>
  windows: ReadonlyMap<WindowLedger, Pick<WindowLedger, 'refunded' | 'reported'>>
}

interface KeyLedger {
  readonly losses: Loss[]
  lastState?: QuotaState
  /** Bans that an operator lifted. */
  readonly lifted: { readonly bannedUntilMs: number; readonly unbannedAtMs: number }[]
  unbans: number
  /** Whether the hash was ever corrupt. Only the replica that finds this repairs it, so what the others know may be lost. */
  wasCorrupt: boolean
  /** The bans that replicas imposed. A replica that learns of a later unban drops its ban. */
  readonly localBans: Map<string, { readonly untilMs: number; readonly unbannedAtMs: number }>
}

/** Records every decision, and throws if one breaks a guarantee. */
export class Ledger {
  readonly windows = new Map<string, WindowLedger>()
  readonly #keys = new Map<string, KeyLedger>()
  #hasLost = false

  /** `isCalm`: Redis is always available and keeps its data, so each limit is exact. */
  constructor(
    private readonly rules: ReadonlyMap<string, QuotaRules>,
    private readonly isCalm: boolean,
  ) {
    for (const keyId of rules.keys()) this.#keys.set(keyId, { losses: [], lifted: [], unbans: 0, wasCorrupt: false, localBans: new Map() })
  }

  /** Redis is about to lose data. `replicas`: those that can reach it. */
  addLoss(replicas: readonly SimulatedReplica[]): void {
    this.#hasLost = true
    const known = new Map(replicas.map((replica) => [replica.name, this.#listStates(replica)]))
    for (const window of this.windows.values()) window.noteLoss()
    const windows = new Map([...this.windows.values()].map((window) => [window, { refunded: window.refunded, reported: window.reported }]))
    for (const key of this.#keys.values()) {
      // What was reported since an earlier loss may be lost as well.
      for (const loss of key.losses)
        loss.windows = new Map([...loss.windows].map(([window, at]) => [window, { ...at, reported: window.reported }]))
      key.losses.push({ known: new Map(key.wasCorrupt ? [] : known), windows })
    }
  }

  /** The hash of the key is about to be corrupted. */
  addCorruption(keyId: string): void {
    this.addLoss([])
    this.#key(keyId).wasCorrupt = true
  }

  /** The replica may be unable to restore what it knows. */
  excuse({ name }: SimulatedReplica): void {
    for (const { losses } of this.#keys.values()) for (const { known } of losses) known.delete(name)
  }

  /** The replica may never report what it has admitted so far: it has ended, or its clock has stepped to another minute. */
  addUnreported({ name }: SimulatedReplica): void {
    for (const window of this.windows.values()) {
      const share = window.shares.get(name)
      if (share) window.shares.set(name, { ...share, unreported: share.admitted })
    }
  }

  addUnconfirmedReport(keyId: string, { window, used }: UsageDelta): void {
    for (const each of this.#windowsOf(keyId, window)) {
      each.unreported += Math.max(0, used[each.name])
    }
  }

  addRefundCall({ name }: SimulatedReplica, keyId: string, charge: Charge): void {
    for (const window of this.#windowsOf(keyId, charge)) {
      window.refundCalls += 1
      const share = window.shares.get(name)
      if (share) window.shares.set(name, { ...share, granted: share.granted - 1 })
    }
  }

  /** An operation that Redis executed. */
  addOperation({ key, args, outcome, nowMs, state }: QuotaOperation): void {
    const keyId = key.slice(key.lastIndexOf(':') + 1)
    const ledger = this.#key(keyId)
    const { lastState } = ledger
    if (args.operation === 'unban') {
      ledger.unbans += 1
      if (lastState && isBanned(lastState, { nowMs }) && ledger.losses.length === 0)
        ledger.lifted.push({ bannedUntilMs: lastState.bannedUntilMs, unbannedAtMs: state.unbannedAtMs })
    }
    const isCharged = args.operation === 'take' && outcome === 'done'
    if (isCharged) this.#checkBan(keyId, ledger, state, nowMs)
    if (outcome !== 'stale' && args.operation !== 'announce') {
      for (const window of this.#windowsOf(keyId, state.window)) this.#count(window, ledger, args.delta, state, isCharged)
    }
    if (isCharged) ledger.losses.length = 0
    if (args.operation === 'take' && (outcome === 'rejected' || outcome === 'banned')) this.#checkRejection(keyId, state, nowMs)
    for (const { bannedUntilMs, unbannedAtMs } of ledger.lifted) {
      const isAgain = nowMs < bannedUntilMs && state.bannedUntilMs === bannedUntilMs && state.unbannedAtMs >= unbannedAtMs
      check(!isAgain, () => `a lifted ban of ${keyId} applies again`)
    }
    ledger.lastState = state
  }

  /** A response to a client. */
  addVerdict(replica: SimulatedReplica, keyId: string, rules: QuotaRules, verdict: Verdict): void {
    const isLocal = replica.store.decidedLocally.has(rules)
    if ('charge' in verdict) {
      for (const window of this.#windowsOf(keyId, verdict.charge)) {
        window.admitted += 1
        if (isLocal) this.#addLocal(window, replica, rules)
        check(
          window.admitted - window.refundCalls <= window.bound,
          () => `more than ${window.bound} requests were granted: ${window.describe()}`,
        )
      }
      if (isLocal) this.#checkLocalBan(replica, keyId, verdict.quota.nowMs)
    }
    if (!isLocal || verdict.kind !== 'banned' || verdict.window) return
    const untilMs = (verdict.quota.binding.resetSeconds - 1) * 1000
    this.#key(keyId).localBans.set(replica.name, { untilMs, unbannedAtMs: replica.store.lastState(keyId)?.unbannedAtMs ?? 0 })
  }

  /** Everything is healthy, and everything that is pending has been reported. */
  checkEnd(keyId: string, state: QuotaState | undefined): void {
    if (!state) return
    for (const window of this.#windowsOf(keyId, state.window)) {
      const used = state.used[window.name]
      const { charged, admittedLocally, maybeCounted, refundCalls, unreported } = window
      const forgotten = window.forgotten + window.countForgotten(used)
      const unreportedShares = [...window.shares.values()].reduce((sum, share) => sum + share.unreported, 0)
      const least = charged + admittedLocally - maybeCounted - refundCalls - unreported - unreportedShares - forgotten
      check(used >= least, () => `usage was not reported: ${used} instead of at least ${least}: ${window.describe()}`)
    }
  }

  #count(window: WindowLedger, ledger: KeyLedger, delta: UsageDelta | undefined, state: QuotaState, isCharged: boolean): void {
    const { name, number } = window
    const used = state.used[name]
    const change = delta?.window[name] === number ? delta.used[name] : 0
    if (change > 0) window.reported += change
    else window.refunded -= change
    if (isCharged) {
      window.charged += 1
      for (const { known, windows } of ledger.losses) {
        const restored = window.countWithout(used - 1, windows.get(window) ?? { refunded: 0, reported: 0 })
        for (const [replica, states] of known) {
          const knownState = states.get(window.keyId)
          const isRestored = knownState?.window[name] !== number || restored >= knownState.used[name]
          check(
            isRestored,
            () => `${replica} knew that ${knownState?.used[name]} were used, but Redis decides with ${restored}: ${window.describe()}`,
          )
        }
      }
      window.forgotten += window.countForgotten(used - 1)
      window.beforeLoss = undefined
      const mostCharged = window.limit + window.forgotten
      check(window.charged - window.refunded <= mostCharged, () => `Redis granted more than ${mostCharged}: ${window.describe()}`)
    }
    window.used = used
    const mostUsed = window.charged + window.admittedLocally - window.maybeCounted
    check(used <= mostUsed, () => `${used} requests count as used, but at most ${mostUsed} were: ${window.describe()}`)
  }

  #addLocal(window: WindowLedger, { name, store, clock, lowestCount }: SimulatedReplica, rules: QuotaRules): void {
    check(!this.isCalm, () => `${name} decided a request, although Redis was available`)
    window.admittedLocally += 1
    if (store.maybeCounted.has(rules)) window.maybeCounted += 1
    // Once the replica knows the clock of Redis, this may be a window that has not begun or has ended, which the report then leaves out.
    else if (!store.knowsClock && clock.stepMs !== 0) window.unreported += 1
    const { admitted, granted, unreported } = window.shares.get(name) ?? { admitted: 0, granted: 0, unreported: 0 }
    const grant = { admitted: admitted + 1, granted: granted + 1, unreported, share: Math.ceil(window.limit / lowestCount) }
    window.shares.set(name, grant)
    check(grant.granted <= grant.share, () => `${name} granted more than its share of ${grant.share}: ${window.describe()}`)
  }

  #checkBan(keyId: string, { losses, lastState }: KeyLedger, state: QuotaState, nowMs: number): void {
    const isCutShort = (known: QuotaState | undefined) =>
      known !== undefined && isBanned(known, { nowMs }) && known.unbannedAtMs >= state.unbannedAtMs
    check(losses.length > 0 || !isCutShort(lastState), () => `Redis admitted a request with ${keyId} during a ban`)
    for (const { known } of losses) {
      for (const [replica, states] of known) {
        check(!isCutShort(states.get(keyId)), () => `${replica} knew that ${keyId} was banned, but Redis admitted a request`)
      }
    }
  }

  #checkLocalBan({ name, store }: SimulatedReplica, keyId: string, nowMs: number): void {
    const { localBans, unbans } = this.#key(keyId)
    const shared = store.lastState(keyId)
    const mayBeLifted = this.#hasLost && unbans > 0
    check(
      mayBeLifted || !shared || !isBanned(shared, { nowMs }),
      () => `${name} admitted a request with ${keyId}, although it knew its ban`,
    )
    const ban = localBans.get(name)
    check(
      !ban || ban.unbannedAtMs < (shared?.unbannedAtMs ?? 0) || nowMs > ban.untilMs,
      () => `${name} admitted a request with ${keyId}, which it had banned`,
    )
  }

  #checkRejection(keyId: string, state: QuotaState, nowMs: number): void {
    if (!this.isCalm || isBanned(state, { nowMs })) return
    const isExact = this.#windowsOf(keyId, state.window).some(({ charged, refunded, limit }) => charged - refunded === limit)
    check(
      isExact,
      () =>
        `Redis rejected a request with ${keyId} too early: ${this.#windowsOf(keyId, state.window)
          .map((window) => window.describe())
          .join('; ')}`,
    )
  }

  #listStates({ store }: SimulatedReplica): ReadonlyMap<string, QuotaState> {
    const states = [...this.#keys.keys()].map((keyId) => [keyId, store.lastState(keyId)] as const)
    return new Map(states.filter((entry): entry is [string, QuotaState] => entry[1] !== undefined))
  }

  #key(keyId: string): KeyLedger {
    const ledger = this.#keys.get(keyId)
    if (!ledger) throw new Error(`There is no key ${keyId}`)
    return ledger
  }

  #windowsOf(keyId: string, numbers: WindowNumbers): WindowLedger[] {
    return WINDOWS.map((name) => {
      const id = `${keyId} ${name} ${numbers[name]}`
      const window = this.windows.get(id) ?? new WindowLedger(keyId, name, numbers[name], this.rules.get(keyId)?.limits[name] ?? 0)
      this.windows.set(id, window)
      return window
    })
  }
}

/** A guarantee does not hold. */
export class Violation extends Error {}

export function check(condition: boolean, describe: () => string): void {
  if (!condition) throw new Violation(describe())
}
