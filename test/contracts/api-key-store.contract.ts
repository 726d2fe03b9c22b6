import { expect } from 'chai'
import type { ApiKey, StoredApiKey } from '../../src/core/api-key.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { Subscription } from '../../src/core/plan.js'
import type { ApiKeyStore } from '../../src/core/ports/api-key-store.js'
import { MovableClock } from '../support/movable-clock.js'
import { until } from '../support/until.js'
import { anApiKey, aSecretHash, shuffled } from '../support/builders.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { rejection } from './rejection.js'

const HOUR_MS = 60 * 60 * 1000

type OpenApiKeyStore = (clock: MovableClock) => Promise<OpenAdapter<ApiKeyStore>>

export function describeApiKeyStore(name: string, open: OpenApiKeyStore, outage?: Outage): void {
  describe(`the API key store ${name}`, () => {
    let clock: MovableClock
    let opened: OpenAdapter<ApiKeyStore>
    let keys: ApiKeyStore

    beforeEach(async () => {
      clock = new MovableClock()
      opened = await open(clock)
      keys = opened.port
    })

    afterEach(() => opened.close())

    for (const [what, overrides] of [
      ['with no optional field, and adds none', {}],
      ['with its own limits', { plan: 'enterprise', limits: { minute: 1, day: 2 ** 40 } }],
      ['that expires', { expiresAtMs: Date.UTC(2027, 0, 1, 0, 0, 0, 1) }],
      ['that has expired', { expiresAtMs: 1 }],
      ['that is revoked', { revokedAtMs: Date.UTC(2026, 10, 2, 3, 4, 5, 678) }],
      ['of an owner with any name', { owner: 'Ré \u{1f436} "$where" a.b \\' }],
      ['with every field', { plan: 'pro', limits: { minute: 7, day: 8 }, expiresAtMs: 4_000_000_000_001, revokedAtMs: 4_000_000_000_000 }],
    ] satisfies [string, Partial<ApiKey>][]) {
      it(`finds a key ${what}`, async () => {
        const key = anApiKey('one', overrides)
        expect(await keys.insert(key)).to.equal('inserted')
        expect(await keys.findById(key.keyId)).to.deep.equal(key)
        expect(await keys.list({})).to.deep.equal([key])
        expect(await keys.findBySecretHash(key.secretHash)).to.deep.equal(key)
      })
    }

    it('returns undefined for an unknown secret hash, a part of one, and one that differs only in letter case', async () => {
      const secretHash = 'abcdef0123456789'.repeat(4)
      expect(await keys.findBySecretHash(secretHash)).to.equal(undefined)
      await keys.insert(anApiKey('one', { secretHash }))
      const others = [aSecretHash('other'), secretHash.toUpperCase(), secretHash.slice(1), `${secretHash}0`, '', 'key_one', '^a', '.*']
      for (const other of others) expect(await keys.findBySecretHash(other)).to.equal(undefined)
    })

    it('returns undefined for an unknown key ID, a part of one, and one that differs only in letter case', async () => {
      expect(await keys.findById('key_one')).to.equal(undefined)
      await keys.insert(anApiKey('one'))
      for (const other of ['key_two', 'KEY_ONE', 'key_on', 'key_one0', '', aSecretHash('one'), '^key', '.*']) {
        expect(await keys.findById(other)).to.equal(undefined)
      }
    })

    it('rejects a taken secret hash, leaves the first key unchanged, and does not reserve the second key ID', async () => {
      await keys.insert(anApiKey('one'))
      expect(await keys.insert(anApiKey('two', { secretHash: aSecretHash('one'), plan: 'business' }))).to.equal('taken')
      expect(await keys.findBySecretHash(aSecretHash('one'))).to.deep.equal(anApiKey('one'))
      expect(await keys.insert(anApiKey('two'))).to.equal('inserted')
    })

    it('rejects a taken key ID, leaves the first key unchanged, and does not reserve the second secret hash', async () => {
      await keys.insert(anApiKey('one'))
      expect(await keys.insert(anApiKey('two', { keyId: 'key_one', plan: 'business' }))).to.equal('taken')
      expect(await keys.findBySecretHash(aSecretHash('one'))).to.deep.equal(anApiKey('one'))
      expect(await keys.findBySecretHash(aSecretHash('two'))).to.equal(undefined)
      expect(await keys.insert(anApiKey('two'))).to.equal('inserted')
    })

    for (const [what, duplicate] of [
      ['secret hash', (index: number) => anApiKey(`duplicate${index}`, { secretHash: aSecretHash('one') })],
      ['key ID', (index: number) => anApiKey(`duplicate${index}`, { keyId: 'key_one' })],
    ] satisfies [string, (index: number) => ApiKey][]) {
      it(`inserts exactly one of 50 keys with the same ${what} concurrently on two replicas`, async () => {
        const replicas = [keys, await opened.reopen()] as const
        const duplicates = Array.from({ length: 50 }, (_, index) => duplicate(index))
        const outcomes = await Promise.all(duplicates.map((key, index) => (replicas[index % 2] as ApiKeyStore).insert(key)))
        const winner = duplicates[outcomes.indexOf('inserted')]
        expect(outcomes.filter((outcome) => outcome === 'inserted')).to.have.lengthOf(1)
        const found = await Promise.all(
          [...new Set(duplicates.map(({ secretHash }) => secretHash))].map((hash) => keys.findBySecretHash(hash)),
        )
        expect(found.filter((key) => key !== undefined)).to.deep.equal([winner])
      })
    }

    it('finds an inserted key immediately on another replica and after a restart', async () => {
      await keys.insert(anApiKey())
      expect(await (await opened.reopen()).findBySecretHash(anApiKey().secretHash)).to.deep.equal(anApiKey())
    })

    it('is not affected by later changes of the passed objects', async () => {
      const passed = { ...anApiKey('one', { limits: { minute: 1, day: 2 } }), limits: { minute: 1, day: 2 } }
      await keys.insert(passed)
      passed.owner = 'Changed'
      passed.limits.day = 9
      expect(await keys.findBySecretHash(passed.secretHash)).to.deep.equal(anApiKey('one', { limits: { minute: 1, day: 2 } }))

      const limits = { minute: 3, day: 4 }
      await keys.changePlan('key_one', { plan: 'pro', limits })
      limits.day = 9
      expect((await keys.findById('key_one'))?.limits).to.deep.equal({ minute: 3, day: 4 })
    })

    it('lists all keys, including revoked and expired ones, by creation time', async () => {
      expect(await keys.list({})).to.deep.equal([])
      const states = [{}, { revokedAtMs: 1 }, { expiresAtMs: 1 }]
      const created = Array.from({ length: 250 }, (_, index) =>
        anApiKey(`k${(index * 7) % 250}`, { createdAtMs: 1_000_000 + index, ...states[index % 3] }),
      )
      await Promise.all(shuffled(created).map((key) => keys.insert(key)))
      expect(await keys.list({})).to.deep.equal(created)
    })

    it('lists each of several keys with the same creation time once', async () => {
      const created = Array.from({ length: 30 }, (_, index) => anApiKey(`k${index}`))
      for (const key of created) await keys.insert(key)
      expect(await keys.list({})).to.have.deep.members(created)
    })

    for (const [what, state, ownLimits, subscription] of [
      ['another plan', {}, {}, { plan: 'pro' }],
      ['the same plan', {}, {}, { plan: 'free' }],
      ['another plan, with its own limits', {}, {}, { plan: 'enterprise', limits: { minute: 7, day: 2 ** 40 } }],
      ['another plan, its own limits replaced', {}, { limits: { minute: 1, day: 2 } }, { plan: 'pro', limits: { minute: 3, day: 4 } }],
      ['another plan, its own limits removed', {}, { limits: { minute: 1, day: 2 } }, { plan: 'business' }],
      ['another plan, while it is expired', { expiresAtMs: 4 }, {}, { plan: 'pro' }],
    ] satisfies [string, Partial<ApiKey>, Pick<ApiKey, 'limits'>, Subscription][]) {
      it(`changes the plan of a key and increments its version: ${what}`, async () => {
        await keys.insert(anApiKey('one', { ...state, ...ownLimits }))
        await keys.insert(anApiKey('two'))
        const expected = { ...anApiKey('one', state), ...subscription, version: 2 }
        expect(await keys.changePlan('key_one', subscription)).to.deep.equal(expected)
        expect(await keys.findBySecretHash(aSecretHash('one'))).to.deep.equal(expected)
        expect(await keys.findById('key_two')).to.deep.equal(anApiKey('two'))
      })
    }

    it('revokes a key from the given time on, increments its version, and changes nothing else', async () => {
      const key = anApiKey('one', { limits: { minute: 1, day: 2 }, expiresAtMs: 9, plan: 'pro' })
      await keys.insert(key)
      await keys.insert(anApiKey('two'))
      expect(await keys.revoke('key_one', 1_792_000_000_001)).to.deep.equal({ ...key, revokedAtMs: 1_792_000_000_001, version: 2 })
      expect(await keys.findBySecretHash(key.secretHash)).to.deep.equal({ ...key, revokedAtMs: 1_792_000_000_001, version: 2 })
      expect(await keys.findById('key_two')).to.deep.equal(anApiKey('two'))
    })

    it('leaves a key that is already revoked unchanged', async () => {
      await keys.insert(anApiKey('one'))
      const revoked = await keys.revoke('key_one', 1_000)
      for (const atMs of [2_000, 500]) expect(await keys.revoke('key_one', atMs)).to.deep.equal(revoked)
      expect(await keys.findById('key_one')).to.deep.equal(revoked)
    })

    it('does not change the plan of a revoked key, and returns undefined', async () => {
      const revoked = anApiKey('one', { revokedAtMs: 5 })
      await keys.insert(revoked)
      expect(await keys.changePlan('key_one', { plan: 'pro' })).to.equal(undefined)
      expect(await keys.findById('key_one')).to.deep.equal(revoked)
    })

    it('changes nothing and returns undefined if the key does not exist', async () => {
      await keys.insert(anApiKey('one'))
      expect(await keys.changePlan('key_two', { plan: 'pro' })).to.equal(undefined)
      expect(await keys.revoke('key_two', 1_000)).to.equal(undefined)
      expect(await keys.list({})).to.deep.equal([anApiKey('one')])
    })

    it('increments the version for each of 20 concurrent changes on two replicas', async () => {
      const replicas = [keys, await opened.reopen()] as const
      await keys.insert(anApiKey('one'))
      const changed = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          (replicas[index % 2] as ApiKeyStore).changePlan('key_one', { plan: 'pro', limits: { minute: index + 1, day: 100 } }),
        ),
      )
      const versions = changed.map((key) => key?.version ?? 0).toSorted((a, b) => a - b)
      expect(versions).to.deep.equal(Array.from({ length: 20 }, (_, index) => index + 2))
      expect(await keys.findById('key_one')).to.deep.equal(changed.find((key) => key?.version === 21))
    })

    it('revokes a key once for 20 concurrent revocations on two replicas, which all return the same key', async () => {
      const replicas = [keys, await opened.reopen()] as const
      await keys.insert(anApiKey('one'))
      const revoked = await Promise.all(
        Array.from({ length: 20 }, (_, index) => (replicas[index % 2] as ApiKeyStore).revoke('key_one', 1_000 + index)),
      )
      expect(revoked[0]?.revokedAtMs).to.be.within(1_000, 1_019)
      for (const key of revoked) expect(key).to.deep.equal({ ...anApiKey('one'), revokedAtMs: revoked[0]?.revokedAtMs, version: 2 })
      expect(await replicas[1].findById('key_one')).to.deep.equal(revoked[0])
    })

    it('never loses a revocation to a concurrent plan change, which is either stored and returned, or neither', async () => {
      const replicas = [keys, await opened.reopen()] as const
      for (let index = 0; index < 10; index++) {
        await keys.insert(anApiKey(`k${index}`))
        const change = replicas[0].changePlan(`key_k${index}`, { plan: 'pro' })
        await replicas[1].revoke(`key_k${index}`, 1_000)
        const expected = (await change) ? { plan: 'pro', version: 3 } : { plan: 'free', version: 2 }
        expect(await keys.findById(`key_k${index}`)).to.include({ ...expected, revokedAtMs: 1_000 })
      }
    })

    /** Uses may be recorded late. */
    async function untilRecorded(keyId: string, atLeastMs: number): Promise<StoredApiKey> {
      const isRecorded = async () => ((await keys.findById(keyId))?.lastUsedAtMs ?? 0) >= atLeastMs
      await until(`a use of ${keyId} is recorded`, isRecorded)
      return (await keys.findById(keyId)) as StoredApiKey
    }

    it('records the use of a key for operators only, and changes nothing else', async () => {
      const key = anApiKey('one', { limits: { minute: 1, day: 2 }, expiresAtMs: clock.nowMs() + 1 })
      await keys.insert(key)
      expect(await keys.findBySecretHash(key.secretHash)).to.deep.equal(key)
      expect(await untilRecorded('key_one', 1)).to.deep.equal({ ...key, lastUsedAtMs: clock.nowMs() })
      expect(await (await opened.reopen()).list({})).to.deep.equal([{ ...key, lastUsedAtMs: clock.nowMs() }])
      expect(await keys.findBySecretHash(key.secretHash)).to.deep.equal(key)
    })

    it('records uses accurate to the hour, never in the future', async () => {
      await keys.insert(anApiKey('one'))
      for (let use = 0; use < 20; use++) {
        await keys.findBySecretHash(aSecretHash('one'))
        const { lastUsedAtMs } = await untilRecorded('key_one', clock.nowMs() - HOUR_MS + 1)
        expect(lastUsedAtMs).to.be.at.most(clock.nowMs())
        clock.advanceMs(HOUR_MS / 3 + 1)
      }
    })

    it('records no use of keys that are revoked, expired or only shown to operators', async () => {
      const unused = [anApiKey('revoked', { revokedAtMs: 1 }), anApiKey('expired', { expiresAtMs: clock.nowMs() }), anApiKey('seen')]
      for (const key of [...unused, anApiKey('used')]) await keys.insert(key)
      for (const secret of ['revoked', 'expired']) await keys.findBySecretHash(aSecretHash(secret))
      await keys.findById('key_seen')
      await keys.list({})

      await keys.findBySecretHash(aSecretHash('used'))
      await untilRecorded('key_used', 1)
      for (const key of unused) expect(await keys.findById(key.keyId)).to.deep.equal(key)
    })

    it('keeps the recorded use through a plan change and a revocation', async () => {
      await keys.insert(anApiKey('one'))
      await keys.findBySecretHash(aSecretHash('one'))
      const { lastUsedAtMs } = await untilRecorded('key_one', 1)
      expect(await keys.changePlan('key_one', { plan: 'pro' })).to.include({ lastUsedAtMs })
      expect(await keys.revoke('key_one', 1_000)).to.include({ lastUsedAtMs })
      expect(await keys.findById('key_one')).to.include({ lastUsedAtMs, version: 3 })
    })
  })
  if (outage) describeApiKeyStoreOutages(name, open, outage)
}

export function describeApiKeyStoreOutages(name: string, open: OpenApiKeyStore, outage: Outage): void {
  describe(`the API key store ${name}, during an outage`, () => {
    let opened: OpenAdapter<ApiKeyStore>
    let keys: ApiKeyStore

    beforeEach(async () => {
      opened = await open(new MovableClock())
      keys = opened.port
      await keys.insert(anApiKey('one'))
    })

    afterEach(async () => {
      await outage.end()
      await opened.close()
    })

    it('throws StoreUnavailable from every method instead of returning an empty result', async () => {
      await outage.begin()
      const calls = [
        keys.findBySecretHash(aSecretHash('one')),
        keys.findById('key_one'),
        keys.findById('key_two'),
        keys.list({}),
        keys.insert(anApiKey('two')),
        keys.changePlan('key_one', { plan: 'pro' }),
        keys.revoke('key_one', 1_000),
      ]
      for (const reason of await Promise.all(calls.map(rejection))) expect(reason).to.be.instanceOf(StoreUnavailable)
    })

    it('loses no key, and applies failed writes completely or not at all', async () => {
      await keys.insert(anApiKey('three'))
      await outage.begin()
      const failing = [keys.insert(anApiKey('two')), keys.changePlan('key_one', { plan: 'pro' }), keys.revoke('key_three', 1_000)]
      await Promise.all(failing.map(rejection))
      await outage.end()
      expect([undefined, anApiKey('two')]).to.deep.include(await keys.findById('key_two'))
      expect([anApiKey('one'), anApiKey('one', { plan: 'pro', version: 2 })]).to.deep.include(await keys.findById('key_one'))
      expect([anApiKey('three'), anApiKey('three', { revokedAtMs: 1_000, version: 2 })]).to.deep.include(await keys.findById('key_three'))
    })

    it('records the next use if it could not record one', async () => {
      await outage.begin()
      await rejection(keys.findBySecretHash(aSecretHash('one')))
      await outage.end()
      await keys.findBySecretHash(aSecretHash('one'))
      await until('the use is recorded', async () => (await keys.findById('key_one'))?.lastUsedAtMs !== undefined)
    })
  })
}
