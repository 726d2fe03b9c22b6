import fc from 'fast-check'
import type { QuotaHash, StateReply } from '../../../src/adapters/redis/quota-hash.js'
import { mergeQuotaStates } from '../../../src/core/merge-quota-states.js'
import type { KeyVersion, QuotaState, UsageDelta, Verdict } from '../../../src/core/quota.js'
import { decide, isBanned, isStale, reconcile, rollForward, toRefundDelta, unban } from '../../../src/core/quota.js'
import type { Instant } from '../../../src/core/window.js'
import { getMinutePhaseSeconds, getWindowNumber } from '../../../src/core/window.js'
import { NO_QUOTA_STATE, someBanRules } from '../../support/builders.js'
import type { MovableClock } from '../../support/movable-clock.js'

const KEY_IDS = ['key_a', 'key_b', 'key_c']
const MINUTE_MS = 60_000

const aState = fc.record({
  minutesAhead: fc.constantFrom(-1, 0, 0, 0, 1, 59, 60, 61),
  daysAhead: fc.constantFrom(-1, 0, 0, 0, 0, 1, 2),
  minute: fc.nat({ max: 25 }),
  day: fc.nat({ max: 70 }),
  strikes: fc.nat({ max: 10 }),
  firstRejectionAgoMs: fc.option(fc.nat({ max: 3_000 }), { nil: undefined }),
  bannedForMs: fc.constantFrom(undefined, undefined, -MINUTE_MS, 1_000, MINUTE_MS),
  banLevel: fc.nat({ max: 3 }),
  unbannedAgoMs: fc.constantFrom(undefined, undefined, undefined, -MINUTE_MS, 1_000),
  version: fc.integer({ min: -2, max: 1 }),
})

type KnownState = typeof aState extends fc.Arbitrary<infer Value> ? Value : never

export const aStep = fc.record({
  kind: fc.oneof(
    { weight: 30, arbitrary: fc.constant('take' as const) },
    { weight: 3, arbitrary: fc.constantFrom('reconcile' as const, 'refund' as const, 'peek' as const) },
    { weight: 1, arbitrary: fc.constantFrom('unban' as const, 'announce' as const) },
  ),
  keyId: fc.constantFrom(...KEY_IDS),
  passesMs: fc.oneof(
    { weight: 60, arbitrary: fc.integer({ min: 0, max: 200 }) },
    { weight: 10, arbitrary: fc.integer({ min: 0, max: 5_000 }) },
    { weight: 2, arbitrary: fc.integer({ min: 50_000, max: 130_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: -70_000, max: 0 }) },
    { weight: 1, arbitrary: fc.constantFrom(-5 * MINUTE_MS, -59 * MINUTE_MS, -60 * MINUTE_MS, -61 * MINUTE_MS, -25 * 60 * MINUTE_MS) },
    { weight: 2, arbitrary: fc.constantFrom(60 * MINUTE_MS, 24 * 60 * MINUTE_MS, 25 * 60 * MINUTE_MS) },
  ),
  rules: fc.record({
    limits: fc.record({ minute: fc.constantFrom(3, 5, 20), day: fc.constantFrom(15, 60, 2 ** 40) }),
    mode: fc.constantFrom('enforce' as const, 'enforce' as const, 'shadow' as const),
    ban: fc.constantFrom(
      someBanRules({ minStrikes: 8 }),
      someBanRules({ minStrikes: 4, graceMs: 0, longestMs: 200_000, forgetAfterMs: 300_000 }),
      someBanRules(),
    ),
  }),
  version: fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: -2, max: 2 }) }),
  readSince: fc.constantFrom(undefined, 0, 2, 2),
  delta: fc.oneof(
    { weight: 10, arbitrary: fc.constant(undefined) },
    {
      weight: 1,
      arbitrary: fc.record({
        strikes: fc.integer({ min: 0, max: 10 }),
        minute: fc.integer({ min: -4, max: 4 }),
        day: fc.integer({ min: -4, max: 4 }),
        minutesAgo: fc.constantFrom(0, 0, 1),
        daysAgo: fc.constantFrom(0, 0, 1),
      }),
    },
  ),
  /** States that the caller knows: an earlier one of the key, by its age in steps, or any state. */
  known: fc.oneof<fc.MaybeWeightedArbitrary<readonly (number | KnownState)[]>[]>(
    { weight: 20, arbitrary: fc.constant([]) },
    { weight: 2, arbitrary: fc.array(fc.nat({ max: 30 }), { minLength: 1, maxLength: 2 }) },
    { weight: 1, arbitrary: fc.array(aState, { minLength: 1, maxLength: 2 }) },
  ),
})

export type Step = typeof aStep extends fc.Arbitrary<infer Value> ? Value : never

export interface Expected {
  readonly what: string
  readonly reply: Pick<StateReply, 'outcome'> & Partial<StateReply>
  readonly known: readonly QuotaState[]
}

/** Applies the rules of the core to states in a map. */
export class Oracle {
  /** The states of each key, the latest first. */
  readonly #histories = new Map<string, QuotaState[]>()

  constructor(private readonly clock: MovableClock) {}

  step(step: Step): Expected {
    const { keyId, rules, kind } = step
    const at = { nowMs: this.clock.nowMs(), phaseSeconds: getMinutePhaseSeconds(keyId) }
    const history = this.#histories.get(keyId) ?? []
    this.#histories.set(keyId, history)
    const [stored = NO_QUOTA_STATE] = history
    const isMerging = kind === 'take' || kind === 'reconcile'
    const known = isMerging ? step.known.map((one) => (typeof one === 'number' ? (history[one] ?? NO_QUOTA_STATE) : toState(one, at))) : []
    const merged = known.reduce(mergeQuotaStates, stored)
    const delta = toDelta(step, at)
    const keyVersion = toKeyVersion(step)
    const keep = (what: string, outcome: StateReply['outcome'], state: QuotaState): Expected => {
      history.unshift(state)
      history.length = Math.min(history.length, 31)
      return { what: known.length > 0 ? `${what}, merged` : what, reply: { outcome, at, state }, known }
    }
    switch (kind) {
      case 'take': {
        const rolled = rollForward(merged, rules.ban, at)
        if (isStale(keyVersion, merged.keyVersion)) return { what: 'stale', reply: { outcome: 'stale', at, state: rolled }, known }
        const { verdict, state } = decide(merged, rules, at, delta)
        const rejected = state.bannedUntilMs > merged.bannedUntilMs ? 'banned' : 'rejected'
        return keep(describe(verdict), 'charge' in verdict ? 'done' : rejected, { ...state, keyVersion: keyVersion.version })
      }
      case 'reconcile':
        return keep(kind, 'done', delta ? reconcile(merged, rules, at, delta) : rollForward(merged, rules.ban, at))
      case 'refund':
        return keep(kind, 'done', reconcile(stored, rules, at, toRefundDelta(toWindow(step, at))))
      case 'peek':
        return { what: kind, reply: { outcome: 'done', at, state: rollForward(stored, rules.ban, at) }, known }
      case 'unban': {
        const rolled = rollForward(stored, { ...rules.ban, forgetAfterMs: 0 }, at)
        const wasBanned = isBanned(rolled, at)
        return keep(wasBanned ? 'lifted' : 'not-banned', wasBanned ? 'done' : 'rejected', unban(rolled, at.nowMs))
      }
      case 'announce':
        keep(kind, 'done', { ...stored, keyVersion: Math.max(stored.keyVersion, keyVersion.version) })
        return { what: kind, reply: { outcome: 'done' }, known }
    }
  }
}

/** Runs a step on the hash. `known` comes from the oracle. */
export async function run(hash: QuotaHash, step: Step, nowMs: number, { known }: Expected): Promise<Expected['reply']> {
  const { kind, keyId, rules } = step
  const at = { nowMs, phaseSeconds: getMinutePhaseSeconds(keyId) }
  const delta = toDelta(step, at)
  const send = () => {
    switch (kind) {
      case 'take':
        return hash.take(keyId, rules, toKeyVersion(step), { delta, known })
      case 'reconcile':
        return hash.reconcile(keyId, rules, { delta, known })
      case 'refund':
        return hash.reconcile(keyId, rules, { delta: toRefundDelta(toWindow(step, at)) })
      case 'peek':
        return hash.peek(keyId, rules)
      case 'unban':
        return hash.unban(keyId)
      case 'announce':
        return hash.announce(keyId, toKeyVersion(step).version)
    }
  }
  const reply = await send()
  if (!('state' in reply)) throw new Error(`Undecided: ${reply.outcome}`)
  return kind === 'announce' ? { outcome: reply.outcome } : reply
}

function toKeyVersion({ version, readSince }: Step): KeyVersion {
  return { version: 10 + version, ...(readSince === undefined ? {} : { readSince: 10 + readSince }) }
}

function toWindow({ delta }: Step, at: Instant) {
  const { minutesAgo, daysAgo } = delta ?? { minutesAgo: 0, daysAgo: 0 }
  return { minute: getWindowNumber('minute', at) - minutesAgo, day: getWindowNumber('day', at) - daysAgo }
}

function toDelta(step: Step, at: Instant): UsageDelta | undefined {
  if (!step.delta) return undefined
  const { strikes, minute, day } = step.delta
  return { window: toWindow(step, at), strikes, used: { minute, day } }
}

function toState(known: KnownState, at: Instant): QuotaState {
  const { minutesAhead, daysAhead, minute, day, strikes, firstRejectionAgoMs, bannedForMs, banLevel, unbannedAgoMs, version } = known
  return {
    window: { minute: getWindowNumber('minute', at) + minutesAhead, day: getWindowNumber('day', at) + daysAhead },
    used: { minute, day },
    strikes,
    ...(firstRejectionAgoMs === undefined ? {} : { firstRejectionMs: at.nowMs - firstRejectionAgoMs }),
    bannedUntilMs: bannedForMs === undefined ? 0 : at.nowMs + bannedForMs,
    banLevel,
    unbannedAtMs: unbannedAgoMs === undefined ? 0 : at.nowMs - unbannedAgoMs,
    keyVersion: 10 + version,
  }
}

function describe(verdict: Verdict): string {
  if (verdict.kind === 'exhausted') return `exhausted ${verdict.window}`
  return 'shadowed' in verdict ? 'shadowed' : verdict.kind
}
