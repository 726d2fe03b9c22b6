import { expect } from 'chai'
import type { ApiKey } from '../../src/core/api-key.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { StaleKeyRecord, QuotaStore } from '../../src/core/ports/quota-store.js'
import type { KeyVersion, Limits, QuotaRules, Verdict } from '../../src/core/quota.js'
import { decide } from '../../src/core/quota.js'
import { makeAdmit } from '../../src/core/use-cases/admit.js'
import type { Authentication } from '../../src/core/use-cases/authenticate.js'
import { anApiKey, somePlans } from '../contracts/builders.js'
import { rejection } from '../contracts/rejection.js'

const CREDENTIALS = { secret: 'pst_live_secret', address: '192.0.2.1' }
const QUOTA = { nowMs: 0, limit: 5, remaining: 4, resetSeconds: 60 }
const OUTDATED: StaleKeyRecord = { kind: 'stale' }
const PLANS = somePlans({ pro: { limits: { minute: 300, day: 10_000 }, mode: 'shadow' } })

describe('admitting a request', () => {
  it('of a verified key asks for its quota once, by the rules of its plan and the version of its record', async () => {
    const { admit, asked } = aGate({ records: [anApiKey('one', { plan: 'pro', version: 7 })] })
    const admission = await admit(CREDENTIALS)
    expect(asked).to.deep.equal([{ keyId: 'key_one', limits: { minute: 300, day: 10_000 }, mode: 'shadow', keyVersion: { version: 7 } }])
    expect(admission).to.deep.include({ kind: 'decided', key: anApiKey('one', { plan: 'pro', version: 7 }) })
    expect(admission).to.nested.include({ 'verdict.kind': 'admitted', 'rules.limits.minute': 300, 'rules.mode': 'shadow' })
  })

  it("goes by a key's own limits before those of its plan", async () => {
    const { admit, asked } = aGate({ records: [anApiKey('one', { plan: 'enterprise', limits: { minute: 3, day: 9 } })] })
    await admit(CREDENTIALS)
    expect(asked[0]?.limits).to.deep.equal({ minute: 3, day: 9 })
  })

  for (const known of [
    { kind: 'missing', quota: QUOTA },
    { kind: 'invalid', quota: QUOTA },
    { kind: 'locked-out', quota: QUOTA },
  ] as const) {
    it(`of a caller whose key is not verified (${known.kind}) returns that, and charges no quota`, async () => {
      const { admit, asked, forgotten } = aGate({ records: [known] })
      expect(await admit(CREDENTIALS)).to.deep.equal(known)
      expect([asked, forgotten]).to.deep.equal([[], []])
    })
  }

  it('hands a rejection on as it is, and reads nothing again', async () => {
    const { admit, asked, forgotten } = aGate({ records: [anApiKey('one', { limits: { minute: 0, day: 0 } })] })
    expect(await admit(CREDENTIALS)).to.nested.include({ kind: 'decided', 'verdict.kind': 'exhausted' })
    expect([asked.length, forgotten]).to.deep.equal([1, []])
  })

  it('by an outdated record forgets it, reads it anew and decides by what it says now', async () => {
    const records = [anApiKey('one', { version: 1 }), anApiKey('one', { version: 2, plan: 'business' })]
    const { admit, asked, forgotten } = aGate({ records, outdated: 1 })
    expect(await admit(CREDENTIALS)).to.deep.nested.include({ kind: 'decided', key: records[1], 'rules.limits.minute': 1000 })
    expect(forgotten).to.deep.equal([anApiKey('one').secretHash])
    expect(asked.map(({ limits, keyVersion }) => [limits.minute, keyVersion])).to.deep.equal([
      [60, { version: 1 }],
      [1000, { version: 2, justRead: true }],
    ])
  })

  it('by an outdated record of a key that was revoked meanwhile is refused as without a valid key', async () => {
    const { admit, asked } = aGate({ records: [anApiKey('one'), { kind: 'invalid', quota: QUOTA }], outdated: 1 })
    expect(await admit(CREDENTIALS)).to.deep.equal({ kind: 'invalid', quota: QUOTA })
    expect(asked).to.have.lengthOf(1)
  })

  it('by an outdated record whose store is away is an outage, and nothing is decided by the old record', async () => {
    const { admit, asked } = aGate({ records: [anApiKey('one'), new StoreUnavailable('The store is away')], outdated: 1 })
    expect(await rejection(admit(CREDENTIALS))).to.be.instanceOf(StoreUnavailable)
    expect(asked).to.have.lengthOf(1)
  })

  it('decides by the record that was just read though its version is the older one', async () => {
    const { admit, asked } = aGate({ records: [anApiKey('one', { version: 5 }), anApiKey('one', { version: 4 })], outdated: 1 })
    expect((await admit(CREDENTIALS)).kind).to.equal('decided')
    expect(asked[1]?.keyVersion).to.deep.equal({ version: 4, justRead: true })
  })

  it('fails, and does not ask for ever, when a store calls a fresh record outdated', async () => {
    const { admit, asked } = aGate({ records: [anApiKey('one'), anApiKey('one')], outdated: 2 })
    expect(await rejection(admit(CREDENTIALS))).to.be.instanceOf(Error)
    expect(asked).to.have.lengthOf(2)
  })
})

interface Asked {
  readonly keyId: string
  readonly limits: Limits
  readonly mode: QuotaRules['mode']
  readonly keyVersion: KeyVersion
}

/** `records`: what comes of reading the caller's key, each time. `outdated`: how often the quota store says so before it decides. */
function aGate({ records, outdated = 0 }: { records: readonly (ApiKey | Authentication | Error)[]; outdated?: number }) {
  const asked: Asked[] = []
  const forgotten: string[] = []
  let reads = 0
  const quotas: QuotaStore = {
    async take(keyId, rules, keyVersion): Promise<Verdict | StaleKeyRecord> {
      asked.push({ keyId, limits: rules.limits, mode: rules.mode, keyVersion })
      return asked.length <= outdated ? OUTDATED : decide(undefined, rules, { nowMs: 0, phaseSeconds: 0 }).verdict
    },
    refund: () => Promise.reject(new Error('Nothing is refunded here')),
  }
  const admit = makeAdmit({
    async authenticate() {
      const read = records[reads++]
      if (!read) throw new Error('Read once more than expected')
      if (read instanceof Error) throw read
      return 'kind' in read ? read : { kind: 'verified', key: read }
    },
    apiKeys: {
      recall: () => undefined,
      hasFound: () => false,
      find: () => Promise.reject(new Error('Only the caller is looked up, by authentication')),
      forget: (secretHash) => void forgotten.push(secretHash),
    },
    quotas,
    plans: PLANS,
  })
  return { admit, asked, forgotten }
}
