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
  /** How many instants had been seen when it began, its own among them. */
  readonly seenInstants: number
}

const LENGTH_MS = { minute: 60_000, day: 86_400_000 }

/**
 * What DESIGN.md §4 says, as plainly as it can be said: nothing is ever counted up or reset, and every number is found by filtering
 * all that happened. Windows go by the latest instant seen: the clock may step back, but by less than a minute.
 */
export class SlowQuotaModel {
  readonly bans: Ban[] = []
  readonly #instantsMs: number[] = []
  readonly #admissions: { readonly clockMs: number }[] = []
  readonly #refunds: { readonly name: WindowName; readonly startMs: number }[] = []
  readonly #rejections: { readonly atMs: number; readonly clockMs: number; readonly bansBefore: number }[] = []

  take(rules: QuotaRules, at: Instant): Verdict {
    this.#instantsMs.push(at.nowMs)
    if (this.#banAt(at)) return this.#rejection(rules, at)
    if (this.#exhausted(rules.limits, at).length > 0) {
      this.#rejections.push({ atMs: at.nowMs, clockMs: this.#clockMs(), bansBefore: this.bans.length })
      if (this.#lastRefusalBrings(rules, at)) this.#ban(rules, at)
      return this.#rejection(rules, at)
    }
    this.#admissions.push({ clockMs: this.#clockMs() })
    return { kind: 'admitted', quota: this.#quota(rules.limits, at), charge: this.#charge(at) }
  }

  refund(charge: Charge, rules: QuotaRules, at: Instant): Quota {
    this.#instantsMs.push(at.nowMs)
    for (const window of this.#windows(at)) {
      const isOfCharge = this.#charge(at)[window.name] === charge[window.name]
      if (isOfCharge && this.used(window.name, at) > 0) this.#refunds.push({ name: window.name, startMs: window.startMs })
    }
    return this.#banAt(at) ? this.#rejection(rules, at).quota : this.#quota(rules.limits, at)
  }

  used(name: WindowName, at: Instant): number {
    const window = this.#window(name, at)
    const admitted = this.#admissions.filter(({ clockMs }) => window.startMs <= clockMs && clockMs < window.endMs)
    const refunded = this.#refunds.filter((refund) => refund.name === name && refund.startMs === window.startMs)
    return admitted.length - refunded.length
  }

  #clockMs(): number {
    return Math.max(...this.#instantsMs)
  }

  #window(name: WindowName, { phaseSeconds }: Instant): Window {
    const earlierByMs = name === 'minute' ? phaseSeconds * 1000 : 0
    const startMs = this.#clockMs() - ((this.#clockMs() + earlierByMs) % LENGTH_MS[name])
    return { name, startMs, endMs: startMs + LENGTH_MS[name] }
  }

  #windows(at: Instant): Window[] {
    return [this.#window('day', at), this.#window('minute', at)]
  }

  #charge(at: Instant): Charge {
    return {
      minute: (this.#window('minute', at).startMs + at.phaseSeconds * 1000) / LENGTH_MS.minute,
      day: this.#window('day', at).startMs / LENGTH_MS.day,
    }
  }

  #exhausted(limits: Limits, at: Instant): Window[] {
    return this.#windows(at).filter(({ name }) => this.used(name, at) >= limits[name])
  }

  #banAt({ nowMs }: Instant): Ban | undefined {
    return this.bans.findLast(({ endsMs }) => nowMs < endsMs)
  }

  /** Whether the rejection just noted is a strike, and the one strike too many. */
  #lastRefusalBrings({ ban, limits }: QuotaRules, at: Instant): boolean {
    const minute = this.#window('minute', at)
    const ofThisMinute = this.#rejections.filter(({ clockMs }) => minute.startMs <= clockMs && clockMs < minute.endMs)
    const sinceTheLastBan = ofThisMinute.filter(({ bansBefore }) => bansBefore === this.bans.length)
    const strikes = sinceTheLastBan.filter(({ atMs }) => atMs > (sinceTheLastBan[0]?.atMs ?? 0) + ban.graceMs)
    return strikes.at(-1) === this.#rejections.at(-1) && strikes.length >= ban.minStrikes && strikes.length >= limits.minute
  }

  #ban({ ban }: QuotaRules, { nowMs }: Instant): void {
    const last = this.bans.at(-1)
    const sinceLastMs = last ? this.#instantsMs.slice(last.seenInstants) : []
    const isForgotten = !last || sinceLastMs.some((ms) => ms >= last.endsMs + ban.forgetAfterMs)
    const level = isForgotten ? 0 : last.level + 1
    let lengthMs = ban.firstMs
    for (let doublings = 0; doublings < level; doublings++) lengthMs = lengthMs * 2
    if (lengthMs > ban.longestMs) lengthMs = ban.longestMs
    this.bans.push({ endsMs: nowMs + lengthMs, level, seenInstants: this.#instantsMs.length })
  }

  #rejection({ limits, mode }: QuotaRules, at: Instant): Verdict {
    const ban = this.#banAt(at)
    const exhausted = this.#exhausted(limits, at)
    const servedAgainMs = Math.max(...exhausted.map(({ endMs }) => endMs), ban?.endsMs ?? 0)
    const waitsFor = exhausted.find(({ endMs }) => endMs === servedAgainMs)
    const nothingLeft = (name: WindowName): WindowQuota => ({
      limit: limits[name],
      remaining: 0,
      resetSeconds: wholeSecondsUp(servedAgainMs),
    })
    const binding = nothingLeft(waitsFor?.name ?? 'minute')
    const quota = ban
      ? { nowMs: at.nowMs, binding, minute: nothingLeft('minute'), day: nothingLeft('day') }
      : { ...this.#quota(limits, at), binding }

    const kind = ban ? 'banned' : 'exhausted'
    if (mode === 'shadow') return { kind: 'admitted', quota, shadowed: kind }
    const rejection = { kind, quota, retryAfterSeconds: wholeSecondsUp(servedAgainMs - at.nowMs) } as const
    return waitsFor ? { ...rejection, window: waitsFor.name } : rejection
  }

  #quota(limits: Limits, at: Instant): Quota {
    const [day, minute] = (['day', 'minute'] as const).map((name) => ({
      limit: limits[name],
      remaining: Math.max(limits[name] - this.used(name, at), 0),
      resetSeconds: this.#window(name, at).endMs / 1000,
    })) as [WindowQuota, WindowQuota]
    return { nowMs: at.nowMs, minute, day, binding: day.remaining <= minute.remaining ? day : minute }
  }
}

function wholeSecondsUp(ms: number): number {
  return ms % 1000 === 0 ? ms / 1000 : (ms - (ms % 1000)) / 1000 + 1
}
