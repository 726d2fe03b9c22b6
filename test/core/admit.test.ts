import { expect } from 'chai'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import { decide } from '../../src/core/quota.js'
import { makeAdmit } from '../../src/core/use-cases/admit.js'
import type { Authentication } from '../../src/core/use-cases/authenticate.js'
import { anApiKey, somePlans } from '../support/builders.js'
import { MovableClock } from '../support/movable-clock.js'
import { rejection } from '../contracts/rejection.js'

const CREDENTIALS = { secret: 'pst_live_secret', address: '192.0.2.1' }
const QUOTA = { nowMs: 0, limit: 5, remaining: 4, resetSeconds: 60 }
const EXHAUSTED = { minute: 0, day: 0 }
const PLANS = somePlans({ pro: { limits: { minute: 300, day: 10_000 }, mode: 'shadow' } })

describe('admitting a request', () => {
  it('charges it once, by the rules of the plan and the version of the record', async () => {
    const key = anApiKey('one', { plan: 'pro', version: 7 })
    const { admit, takes } = anAdmission({ reads: [key] })
    expect(await admit(CREDENTIALS))
      .to.deep.include({ kind: 'decided', key })
      .and.nested.include({ 'verdict.kind': 'admitted' })
    expect(takes).to.have.lengthOf(1)
    expect(takes[0]).to.have.deep.members(['key_one', { ...PLANS.plans.pro, ban: PLANS.ban }, { version: 7 }])
  })

  it('prefers the limits of the key over those of its plan', async () => {
    const limits = { minute: 3, day: 9 }
    const { admit, takes } = anAdmission({ reads: [anApiKey('one', { plan: 'enterprise', limits })] })
    await admit(CREDENTIALS)
    expect(takes[0]?.[1].limits).to.deep.equal(limits)
  })

  it('says when the secret expires if it is the old one of a rotated key, whether the request is admitted or rejected', async () => {
    for (const limits of [{ minute: 1, day: 1 }, EXHAUSTED]) {
      const key = anApiKey('one', { limits })
      const { admit } = anAdmission({ reads: [{ kind: 'verified', key, secretExpiresAtMs: 7 }, key] })
      expect(await admit(CREDENTIALS)).to.include({ kind: 'decided', secretExpiresAtMs: 7 })
      expect(await admit(CREDENTIALS))
        .to.include({ kind: 'decided' })
        .and.not.have.property('secretExpiresAtMs')
    }
  })

  it('returns the failed authentication, and charges nothing', async () => {
    for (const kind of ['missing', 'invalid', 'locked-out'] as const) {
      const { admit, takes, forgotten } = anAdmission({ reads: [{ kind, quota: QUOTA }] })
      expect(await admit(CREDENTIALS)).to.deep.equal({ kind, quota: QUOTA })
      expect([takes, forgotten]).to.deep.equal([[], []])
    }
  })

  it('refunds what it charged, by the rules that applied, and returns the quota after the refund', async () => {
    const { admit, takes, refunds, refunded } = anAdmission({ reads: [anApiKey()] })
    const admission = await admit(CREDENTIALS)
    if (admission.kind !== 'decided' || !('charge' in admission.verdict)) throw new Error('Nothing was charged')
    expect(await admission.refund?.()).to.equal(refunded)
    expect(refunds).to.deep.equal([['key_one', admission.verdict.charge, takes[0]?.[1]]])
  })

  for (const [what, plan, kind] of [
    ['a rejection', 'free', 'exhausted'],
    ['a request that only shadow mode admits', 'pro', 'admitted'],
  ] as const) {
    it(`has nothing to refund for ${what}, and reads the record once`, async () => {
      const { admit, takes, forgotten } = anAdmission({ reads: [anApiKey('one', { plan, limits: EXHAUSTED })] })
      expect(await admit(CREDENTIALS))
        .to.nested.include({ 'verdict.kind': kind })
        .and.not.have.property('refund')
      expect([takes.length, forgotten]).to.deep.equal([1, []])
    })
  }

  it('with a stale record reads the record again and decides by the new one, even if its version is lower', async () => {
    for (const version of [2, 4, 6]) {
      const key = anApiKey('one', { version, plan: 'business' })
      const { admit, takes, forgotten } = anAdmission({ reads: [anApiKey('one', { version: 5 }), key], stale: [6] })
      expect(await admit(CREDENTIALS)).to.deep.include({ kind: 'decided', key })
      expect(forgotten).to.deep.equal([CREDENTIALS.secret])
      expect(takes.map(([, { limits }, keyVersion]) => [limits.minute, keyVersion])).to.deep.equal([
        [60, { version: 5 }],
        [1000, { version, readSince: 6 }],
      ])
    }
  })

  it('with a stale record of a key that was revoked returns the failed authentication', async () => {
    const { admit, takes } = anAdmission({ reads: [anApiKey(), { kind: 'invalid', quota: QUOTA }], stale: [6] })
    expect(await admit(CREDENTIALS)).to.deep.equal({ kind: 'invalid', quota: QUOTA })
    expect(takes).to.have.lengthOf(1)
  })

  it('with a stale record throws an outage of the key store, and does not decide by the old record', async () => {
    const { admit, takes } = anAdmission({ reads: [anApiKey(), new StoreUnavailable('The store is down')], stale: [6] })
    expect(await rejection(admit(CREDENTIALS))).to.be.instanceOf(StoreUnavailable)
    expect(takes).to.have.lengthOf(1)
  })

  for (const [what, reads, stale] of [
    ['authentication', 1, []],
    ['second authentication, after a stale record,', 2, [1]],
  ] as const) {
    it(`with a signal that is aborted during the ${what} charges nothing, and throws the reason`, async () => {
      const reason = new StoreUnavailable('Too late')
      const controller = new AbortController()
      let read = 0
      const onRead = () => ++read === reads && controller.abort(reason)
      const { admit, takes } = anAdmission({ reads: [anApiKey(), anApiKey()], stale, onRead })
      expect(await rejection(admit(CREDENTIALS, controller.signal))).to.equal(reason)
      expect(takes).to.have.lengthOf(stale.length)
    })
  }

  for (const stale of [[], [1]]) {
    it(`with a signal that is aborted during the charge after ${stale.length} stale records refunds it, and throws the reason`, async () => {
      const reason = new StoreUnavailable('Too late')
      const controller = new AbortController()
      const onTake = (takes: number) => takes === stale.length + 1 && controller.abort(reason)
      const { admit, refunds } = anAdmission({ reads: [anApiKey(), anApiKey()], stale, onTake })
      expect(await rejection(admit(CREDENTIALS, controller.signal))).to.equal(reason)
      expect(refunds).to.have.lengthOf(1)
    })
  }

  it('reads the record again if the key changes while it is read again, and names the version that was found each time', async () => {
    const reads = [5, 6, 8].map((version) => anApiKey('one', { version }))
    const { admit, takes, forgotten } = anAdmission({ reads, stale: [6, 8] })
    expect(await admit(CREDENTIALS)).to.deep.include({ kind: 'decided', key: reads[2] })
    expect(takes.map(([, , keyVersion]) => keyVersion)).to.deep.equal([
      { version: 5 },
      { version: 6, readSince: 6 },
      { version: 8, readSince: 8 },
    ])
    expect(forgotten).to.have.lengthOf(2)
  })

  it('decides by the record of a key store that was restored from a backup, whose version is lower than the known one', async () => {
    const restored = anApiKey('one', { version: 2, plan: 'business' })
    const quotas = new MemoryQuotaStore(new MovableClock())
    await quotas.announce('key_one', 9)
    const { admit } = anAdmission({ reads: [restored, restored, restored, restored], quotas })
    expect(await admit(CREDENTIALS)).to.nested.include({ 'verdict.kind': 'admitted' })
    expect(await admit(CREDENTIALS)).to.nested.include({ 'verdict.kind': 'admitted' })
  })

  it('is unavailable if the key changes during each of five reads', async () => {
    const stale = [1, 2, 3, 4, 5]
    const { admit, takes, forgotten } = anAdmission({ reads: stale.map((version) => anApiKey('one', { version: version - 1 })), stale })
    expect(await rejection(admit(CREDENTIALS))).to.be.instanceOf(StoreUnavailable)
    expect([takes.length, forgotten.length]).to.deep.equal([5, 5])
  })
})

interface Behavior {
  /** The results of authenticating, in order. */
  readonly reads: readonly (ApiKey | Authentication | Error)[]
  /** The known version in each `stale` result that the quota store returns before it decides. */
  readonly stale?: readonly number[]
  /** Decides instead. */
  readonly quotas?: QuotaStore
  readonly onRead?: () => unknown
  /** Called with the number of calls so far. */
  readonly onTake?: (takes: number) => unknown
}

function anAdmission({ reads, stale = [], quotas: deciding, onRead = () => {}, onTake = () => {} }: Behavior) {
  const takes: Parameters<QuotaStore['take']>[] = []
  const refunds: Parameters<QuotaStore['refund']>[] = []
  const forgotten: string[] = []
  const { quota: refunded } = decide(
    undefined,
    { ...PLANS.plans.free, limits: EXHAUSTED, ban: PLANS.ban },
    { nowMs: 0, phaseSeconds: 0 },
  ).verdict
  const quotas: QuotaStore = {
    async take(...args) {
      takes.push(args)
      onTake(takes.length)
      const knownVersion = stale[takes.length - 1]
      if (knownVersion !== undefined) return { kind: 'stale', knownVersion }
      return deciding?.take(...args) ?? decide(undefined, args[1], { nowMs: 0, phaseSeconds: 0 }).verdict
    },
    async refund(...args) {
      refunds.push(args)
      return refunded
    },
  }
  const remaining = [...reads]
  const admit = makeAdmit({
    async authenticate() {
      const read = remaining.shift()
      onRead()
      if (!read) throw new Error('Read more often than expected')
      if (read instanceof Error) throw read
      return 'kind' in read ? read : { kind: 'verified', key: read }
    },
    apiKeyVerifier: {
      verify: () => Promise.reject(new Error('Only authentication verifies')),
      forget: (secret) => void forgotten.push(secret),
    },
    quotas,
    plans: PLANS,
  })
  return { admit, takes, refunds, refunded, forgotten }
}
