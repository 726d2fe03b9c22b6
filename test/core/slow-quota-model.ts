import type { Charge, Limits, Quota, QuotaRules, Verdict, WindowQuota } from '../../src/core/quota.js'
import type { Instant, WindowName } from '../../src/core/window.js'

interface Window {
  readonly name: WindowName
  readonly startMs: number
  readonly endMs: number
}

interface Ban {
  readonly endsMs: number
  /** 0 for a first ban. */
  readonly level: number
  /** The number of instants up to the start of the ban, including its own. */
  readonly instantsBefore: number
}

const LENGTH_MS = { minute: 60_000, day: 86_400_000 }

/**
 * The quota rules of DESIGN.md §4 in their simplest form. It keeps no counters: it calculates every number from all past
 * events. The latest instant determines the windows: the clock may step back, by less than a minute.
 */
export class SlowQuotaModel {
  readonly bans: Ban[] = []
  readonly #instantsMs: number[] = []
  readonly #admissions: { readonly clockMs: number }[] = []
  readonly #refunds: { readonly name: WindowName; readonly startMs: number }[] = []
  readonly #rejections: { readonly atMs: number; readonly clockMs: number; readonly bansBefore: number }[] = []

  take(rules: QuotaRules, at: Instant): Verdict {
    this.#instantsMs.push(at.nowMs)
    if (this.#findBan(at)) return this.#reject(rules, at)
    if (this.#listExhausted(rules.limits, at).length > 0) {
      this.#rejections.push({ atMs: at.nowMs, clockMs: this.#latestMs(), bansBefore: this.bans.length })
      if (this.#isLastStrike(rules, at)) this.#ban(rules, at)
      return this.#reject(rules, at)
    }
    this.#admissions.push({ clockMs: this.#latestMs() })
    return { kind: 'admitted', quota: this.#toQuota(rules.limits, at), charge: this.#toCharge(at) }
  }

  refund(charge: Charge, rules: QuotaRules, at: Instant): Quota {
    this.#instantsMs.push(at.nowMs)
    for (const window of this.#listWindows(at)) {
      const isCharged = this.#toCharge(at)[window.name] === charge[window.name]
      if (isCharged && this.#countUsed(window.name, at) > 0) this.#refunds.push({ name: window.name, startMs: window.startMs })
    }
    return this.#findBan(at) ? this.#reject(rules, at).quota : this.#toQuota(rules.limits, at)
  }

  #countUsed(name: WindowName, at: Instant): number {
    const window = this.#toWindow(name, at)
    const admitted = this.#admissions.filter(({ clockMs }) => window.startMs <= clockMs && clockMs < window.endMs)
    const refunded = this.#refunds.filter((refund) => refund.name === name && refund.startMs === window.startMs)
    return admitted.length - refunded.length
  }

  #latestMs(): number {
    return Math.max(...this.#instantsMs)
  }

  #toWindow(name: WindowName, { phaseSeconds }: Instant): Window {
    const offsetMs = name === 'minute' ? phaseSeconds * 1000 : 0
    const startMs = this.#latestMs() - ((this.#latestMs() + offsetMs) % LENGTH_MS[name])
    return { name, startMs, endMs: startMs + LENGTH_MS[name] }
  }

  #listWindows(at: Instant): Window[] {
    return [this.#toWindow('day', at), this.#toWindow('minute', at)]
  }

  #toCharge(at: Instant): Charge {
    return {
      minute: (this.#toWindow('minute', at).startMs + at.phaseSeconds * 1000) / LENGTH_MS.minute,
      day: this.#toWindow('day', at).startMs / LENGTH_MS.day,
    }
  }

  #listExhausted(limits: Limits, at: Instant): Window[] {
    return this.#listWindows(at).filter(({ name }) => this.#countUsed(name, at) >= limits[name])
  }

  #findBan({ nowMs }: Instant): Ban | undefined {
    return this.bans.findLast(({ endsMs }) => nowMs < endsMs)
  }

  /** Whether the latest rejection is the strike that starts a ban. */
  #isLastStrike({ ban, limits }: QuotaRules, at: Instant): boolean {
    const minute = this.#toWindow('minute', at)
    const inThisMinute = this.#rejections.filter(({ clockMs }) => minute.startMs <= clockMs && clockMs < minute.endMs)
    const sinceLastBan = inThisMinute.filter(({ bansBefore }) => bansBefore === this.bans.length)
    const strikes = sinceLastBan.filter(({ atMs }) => atMs > (sinceLastBan[0]?.atMs ?? 0) + ban.graceMs)
    return strikes.at(-1) === this.#rejections.at(-1) && strikes.length >= ban.minStrikes && strikes.length >= limits.minute
  }

  #ban({ ban }: QuotaRules, { nowMs }: Instant): void {
    const last = this.bans.at(-1)
    const sinceLastMs = last ? this.#instantsMs.slice(last.instantsBefore) : []
    const isForgotten = !last || sinceLastMs.some((ms) => ms >= last.endsMs + ban.forgetAfterMs)
    const level = isForgotten ? 0 : last.level + 1
    let lengthMs = ban.firstMs
    for (let doublings = 0; doublings < level; doublings++) lengthMs = lengthMs * 2
    if (lengthMs > ban.longestMs) lengthMs = ban.longestMs
    this.bans.push({ endsMs: nowMs + lengthMs, level, instantsBefore: this.#instantsMs.length })
  }

  #reject({ limits, mode }: QuotaRules, at: Instant): Verdict {
    const ban = this.#findBan(at)
    const exhausted = this.#listExhausted(limits, at)
    const servedAgainMs = Math.max(...exhausted.map(({ endMs }) => endMs), ban?.endsMs ?? 0)
    const waitsFor = exhausted.find(({ endMs }) => endMs === servedAgainMs)
    const toExhausted = (name: WindowName): WindowQuota => ({
      limit: limits[name],
      remaining: 0,
      resetSeconds: toSecondsRoundedUp(servedAgainMs),
    })
    const binding = toExhausted(waitsFor?.name ?? 'minute')
    const quota = ban
      ? { nowMs: at.nowMs, binding, minute: toExhausted('minute'), day: toExhausted('day') }
      : { ...this.#toQuota(limits, at), binding }

    const kind = ban ? 'banned' : 'exhausted'
    if (mode === 'shadow') return { kind: 'admitted', quota, shadowed: kind }
    const rejection = { kind, quota, retryAfterSeconds: toSecondsRoundedUp(servedAgainMs - at.nowMs) } as const
    return waitsFor ? { ...rejection, window: waitsFor.name } : rejection
  }

  #toQuota(limits: Limits, at: Instant): Quota {
    const [day, minute] = (['day', 'minute'] as const).map((name) => ({
      limit: limits[name],
      remaining: Math.max(limits[name] - this.#countUsed(name, at), 0),
      resetSeconds: this.#toWindow(name, at).endMs / 1000,
    })) as [WindowQuota, WindowQuota]
    return { nowMs: at.nowMs, minute, day, binding: day.remaining <= minute.remaining ? day : minute }
  }
}

function toSecondsRoundedUp(ms: number): number {
  return ms % 1000 === 0 ? ms / 1000 : (ms - (ms % 1000)) / 1000 + 1
}
