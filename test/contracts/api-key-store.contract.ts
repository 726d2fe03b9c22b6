import { expect } from 'chai'
import type { ApiKey } from '../../src/core/api-key.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import { PLAN_NAMES } from '../../src/core/plan.js'
import type { ApiKeyStore } from '../../src/core/ports/api-key-store.js'
import { anApiKey, aSecretHash } from './builders.js'
import type { Opened, Outage } from './opened.js'
import { rejection } from './rejection.js'

export function describeApiKeyStore(name: string, open: () => Promise<Opened<ApiKeyStore>>, outage?: Outage): void {
  describe(`the API key store ${name}`, () => {
    let opened: Opened<ApiKeyStore>
    let keys: ApiKeyStore

    beforeEach(async () => {
      opened = await open()
      keys = opened.port
    })

    afterEach(() => opened.close())

    for (const [what, overrides] of [
      ['with no optional field, and adds none', {}],
      ['with limits of its own', { plan: 'enterprise', limits: { minute: 1, day: 2 ** 40 } }],
      ['that expires', { expiresAtMs: Date.UTC(2027, 0, 1, 0, 0, 0, 1) }],
      ['that has expired', { expiresAtMs: 1 }],
      ['that is revoked', { revokedAtMs: Date.UTC(2026, 10, 2, 3, 4, 5, 678) }],
      ['of an owner with any name', { owner: 'Ré \u{1f436} "$where" a.b \\' }],
      ['with every field', { plan: 'pro', limits: { minute: 7, day: 8 }, expiresAtMs: 4_000_000_000_001, revokedAtMs: 4_000_000_000_000 }],
    ] satisfies [string, Partial<ApiKey>][]) {
      it(`finds a key ${what}`, async () => {
        const key = anApiKey('one', overrides)
        expect(await keys.insert(key)).to.equal('inserted')
        expect(await keys.findBySecretHash(key.secretHash)).to.deep.equal(key)
      })
    }

    it('finds a key on each plan', async () => {
      for (const plan of PLAN_NAMES) {
        await keys.insert(anApiKey(plan, { plan }))
        expect(await keys.findBySecretHash(aSecretHash(plan))).to.deep.equal(anApiKey(plan, { plan }))
      }
    })

    it('keeps several keys of one owner, each by its own secret', async () => {
      for (const one of ['a', 'b', 'c']) expect(await keys.insert(anApiKey(one, { owner: 'Acme' }))).to.equal('inserted')
      for (const one of ['a', 'b', 'c']) expect((await keys.findBySecretHash(aSecretHash(one)))?.keyId).to.equal(`key_${one}`)
    })

    it('finds undefined for a secret hash that no key has, or has in part or in another letter case', async () => {
      const secretHash = 'abcdef0123456789'.repeat(4)
      expect(await keys.findBySecretHash(secretHash)).to.equal(undefined)
      await keys.insert(anApiKey('one', { secretHash }))
      const others = [aSecretHash('other'), secretHash.toUpperCase(), secretHash.slice(1), `${secretHash}0`, '', 'key_one', '^a', '.*']
      for (const other of others) expect(await keys.findBySecretHash(other)).to.equal(undefined)
    })

    it('refuses a taken secret hash, leaves the first key as it was, and does not take the second key id', async () => {
      await keys.insert(anApiKey('one'))
      expect(await keys.insert(anApiKey('two', { secretHash: aSecretHash('one'), plan: 'business' }))).to.equal('taken')
      expect(await keys.findBySecretHash(aSecretHash('one'))).to.deep.equal(anApiKey('one'))
      expect(await keys.insert(anApiKey('two'))).to.equal('inserted')
    })

    it('refuses a taken key id, leaves the first key as it was, and does not take the second secret hash', async () => {
      await keys.insert(anApiKey('one'))
      expect(await keys.insert(anApiKey('two', { keyId: 'key_one', plan: 'business' }))).to.equal('taken')
      expect(await keys.findBySecretHash(aSecretHash('one'))).to.deep.equal(anApiKey('one'))
      expect(await keys.findBySecretHash(aSecretHash('two'))).to.equal(undefined)
      expect(await keys.insert(anApiKey('two'))).to.equal('inserted')
    })

    it('refuses the same key a second time, a revoked one too', async () => {
      const revoked = anApiKey('one', { revokedAtMs: 1 })
      await keys.insert(revoked)
      expect(await keys.insert(anApiKey('one'))).to.equal('taken')
      expect(await keys.findBySecretHash(aSecretHash('one'))).to.deep.equal(revoked)
    })

    for (const [what, twin] of [
      ['secret hash', (index: number) => anApiKey(`twin${index}`, { secretHash: aSecretHash('one') })],
      ['key id', (index: number) => anApiKey(`twin${index}`, { keyId: 'key_one' })],
    ] satisfies [string, (index: number) => ApiKey][]) {
      it(`inserts exactly one of 50 keys that come with one ${what} at the same time on two replicas`, async () => {
        const replicas = [keys, await opened.reopen()] as const
        const twins = Array.from({ length: 50 }, (_, index) => twin(index))
        const outcomes = await Promise.all(twins.map((key, index) => (replicas[index % 2] as ApiKeyStore).insert(key)))
        const winner = twins[outcomes.indexOf('inserted')]
        expect(outcomes.filter((outcome) => outcome === 'inserted')).to.have.lengthOf(1)
        const found = await Promise.all([...new Set(twins.map(({ secretHash }) => secretHash))].map((hash) => keys.findBySecretHash(hash)))
        expect(found.filter((key) => key !== undefined)).to.deep.equal([winner])
      })
    }

    it('shows a key to another replica, or after a restart, as soon as it is inserted', async () => {
      await keys.insert(anApiKey())
      expect(await (await opened.reopen()).findBySecretHash(anApiKey().secretHash)).to.deep.equal(anApiKey())
    })

    it('keeps what was inserted, whatever becomes of the object that was passed', async () => {
      const passed = { ...anApiKey() }
      await keys.insert(passed)
      passed.owner = 'Changed'
      expect(await keys.findBySecretHash(passed.secretHash)).to.deep.equal(anApiKey())
    })

    if (outage) {
      describe('while it is away', () => {
        beforeEach(() => keys.insert(anApiKey('one')))
        afterEach(() => outage.end())

        it('throws StoreUnavailable: no key seems unknown, no insert done', async () => {
          await outage.begin()
          for (const asked of [() => keys.findBySecretHash(aSecretHash('one')), () => keys.insert(anApiKey('two'))]) {
            expect(await rejection(asked())).to.be.instanceOf(StoreUnavailable)
          }
        })

        it('loses no key', async () => {
          await outage.begin()
          await rejection(keys.insert(anApiKey('two')))
          await outage.end()
          expect(await keys.findBySecretHash(aSecretHash('one'))).to.deep.equal(anApiKey('one'))
          expect([undefined, anApiKey('two')]).to.deep.include(await keys.findBySecretHash(aSecretHash('two')))
        })
      })
    }
  })
}
