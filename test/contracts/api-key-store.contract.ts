import { expect } from 'chai'
import type { ApiKey, StoredApiKey } from '../../src/core/api-key.js'
import { changeApiKey } from '../../src/core/change-api-key.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { ApiKeyStore } from '../../src/core/ports/api-key-store.js'
import { MovableClock } from '../support/movable-clock.js'
import { until } from '../support/until.js'
import { aChange, anApiKey, anIssue, anOldSecret, aSecretHash, shuffled } from '../support/builders.js'
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
      ['that was rotated', { oldSecret: anOldSecret() }],
      [
        'with every field',
        {
          plan: 'pro',
          oldSecret: anOldSecret(),
          limits: { minute: 7, day: 8 },
          expiresAtMs: 4_000_000_000_001,
          revokedAtMs: 4_000_000_000_000,
        },
      ],
    ] satisfies [string, Partial<ApiKey>][]) {
      it(`finds a key ${what}`, async () => {
        const key = anApiKey('one', overrides)
        expect(await keys.insert(key, anIssue())).to.equal('inserted')
        expect(await keys.findById(key.keyId)).to.deep.equal(key)
        expect(await keys.list({})).to.deep.equal([key])
        expect(await keys.findBySecretHash(key.secretHash)).to.deep.equal(key)
      })
    }

    it('returns undefined for an unknown secret hash, a part of one, and one that differs only in letter case', async () => {
      const secretHash = 'abcdef0123456789'.repeat(4)
      expect(await keys.findBySecretHash(secretHash)).to.equal(undefined)
      await keys.insert(anApiKey('one', { secretHash }), anIssue())
      const others = [aSecretHash('other'), secretHash.toUpperCase(), secretHash.slice(1), `${secretHash}0`, '', 'key_one', '^a', '.*']
      for (const other of others) expect(await keys.findBySecretHash(other)).to.equal(undefined)
    })

    it('returns undefined for an unknown key ID, a part of one, and one that differs only in letter case', async () => {
      expect(await keys.findById('key_one')).to.equal(undefined)
      await keys.insert(anApiKey('one'), anIssue())
      for (const other of ['key_two', 'KEY_ONE', 'key_on', 'key_one0', '', aSecretHash('one'), '^key', '.*']) {
        expect(await keys.findById(other)).to.equal(undefined)
      }
    })

    it('rejects a taken secret hash, leaves the first key unchanged, and does not reserve the second key ID', async () => {
      await keys.insert(anApiKey('one'), anIssue())
      expect(await keys.insert(anApiKey('two', { secretHash: aSecretHash('one'), plan: 'business' }), anIssue())).to.equal('taken')
      expect(await keys.findBySecretHash(aSecretHash('one'))).to.deep.equal(anApiKey('one'))
      expect(await keys.insert(anApiKey('two'), anIssue())).to.equal('inserted')
    })

    it('rejects a taken key ID, leaves the first key unchanged, and does not reserve the second secret hash', async () => {
      await keys.insert(anApiKey('one'), anIssue())
      expect(await keys.insert(anApiKey('two', { keyId: 'key_one', plan: 'business' }), anIssue())).to.equal('taken')
      expect(await keys.findBySecretHash(aSecretHash('one'))).to.deep.equal(anApiKey('one'))
      expect(await keys.findBySecretHash(aSecretHash('two'))).to.equal(undefined)
      expect(await keys.insert(anApiKey('two'), anIssue())).to.equal('inserted')
    })

    for (const [what, duplicate] of [
      ['secret hash', (index: number) => anApiKey(`duplicate${index}`, { secretHash: aSecretHash('one') })],
      ['key ID', (index: number) => anApiKey(`duplicate${index}`, { keyId: 'key_one' })],
    ] satisfies [string, (index: number) => ApiKey][]) {
      it(`inserts exactly one of 50 keys with the same ${what} concurrently on two replicas`, async () => {
        const replicas = [keys, await opened.reopen()] as const
        const duplicates = Array.from({ length: 50 }, (_, index) => duplicate(index))
        const outcomes = await Promise.all(duplicates.map((key, index) => (replicas[index % 2] as ApiKeyStore).insert(key, anIssue())))
        const winner = duplicates[outcomes.indexOf('inserted')]
        expect(outcomes.filter((outcome) => outcome === 'inserted')).to.have.lengthOf(1)
        const found = await Promise.all(
          [...new Set(duplicates.map(({ secretHash }) => secretHash))].map((hash) => keys.findBySecretHash(hash)),
        )
        expect(found.filter((key) => key !== undefined)).to.deep.equal([winner])
      })
    }

    it('finds an inserted key immediately on another replica and after a restart', async () => {
      await keys.insert(anApiKey(), anIssue())
      expect(await (await opened.reopen()).findBySecretHash(anApiKey().secretHash)).to.deep.equal(anApiKey())
    })

    it('is not affected by later changes of the passed objects', async () => {
      const passed = { ...anApiKey('one', { limits: { minute: 1, day: 2 } }), limits: { minute: 1, day: 2 } }
      await keys.insert(passed, anIssue())
      passed.owner = 'Changed'
      passed.limits.day = 9
      expect(await keys.findBySecretHash(passed.secretHash)).to.deep.equal(anApiKey('one', { limits: { minute: 1, day: 2 } }))

      const limits = { minute: 3, day: 4 }
      await keys.update(anApiKey('one', { limits, version: 2 }), aChange())
      limits.day = 9
      expect((await keys.findById('key_one'))?.limits).to.deep.equal({ minute: 3, day: 4 })
    })

    it('lists all keys, including revoked and expired ones, by creation time', async () => {
      expect(await keys.list({})).to.deep.equal([])
      const states = [{}, { revokedAtMs: 1 }, { expiresAtMs: 1 }]
      const created = Array.from({ length: 250 }, (_, index) =>
        anApiKey(`k${(index * 7) % 250}`, { createdAtMs: 1_000_000 + index, ...states[index % 3] }),
      )
      await Promise.all(shuffled(created).map((key) => keys.insert(key, anIssue())))
      expect(await keys.list({})).to.deep.equal(created)
    })

    it('lists each of several keys with the same creation time once', async () => {
      const created = Array.from({ length: 30 }, (_, index) => anApiKey(`k${index}`))
      for (const key of created) await keys.insert(key, anIssue())
      expect(await keys.list({})).to.have.deep.members(created)
    })

    it('finds a key by its old secret, also after the grace period, and by its current one', async () => {
      const key = anApiKey('one', { oldSecret: anOldSecret({ expiresAtMs: 1 }) })
      await keys.insert(anApiKey('one'), anIssue())
      await keys.update({ ...key, version: 2 }, aChange())
      for (const hash of [aSecretHash('one'), aSecretHash('old')])
        expect(await keys.findBySecretHash(hash)).to.deep.equal({ ...key, version: 2 })
    })

    for (const [what, stored, changes] of [
      ['another plan', {}, { plan: 'pro' }],
      ['the same plan', {}, { plan: 'free' }],
      ['its own limits', {}, { plan: 'enterprise', limits: { minute: 7, day: 2 ** 40 } }],
      ['other limits', { limits: { minute: 1, day: 2 } }, { limits: { minute: 3, day: 4 } }],
      ['no limits', { limits: { minute: 1, day: 2 } }, { limits: undefined }],
      ['another plan, while it is expired', { expiresAtMs: 4 }, { plan: 'pro' }],
      ['a revocation', { limits: { minute: 1, day: 2 }, expiresAtMs: 9, plan: 'pro' }, { revokedAtMs: 1_792_000_000_001 }],
      ['a new secret', {}, { secretHash: aSecretHash('new'), hint: 'pst_live_…nEw1', oldSecret: anOldSecret() }],
      ['no old secret', { oldSecret: anOldSecret() }, { oldSecret: undefined }],
      ['every field', {}, { limits: { minute: 1, day: 2 }, expiresAtMs: 3, revokedAtMs: 4, oldSecret: anOldSecret() }],
    ] satisfies [string, Partial<ApiKey>, { readonly [Field in keyof ApiKey]?: ApiKey[Field] | undefined }][]) {
      it(`updates a key: ${what}`, async () => {
        const before = anApiKey('one', stored)
        const { limits, expiresAtMs, revokedAtMs, oldSecret, ...rest } = { ...before, ...changes, version: 2 }
        const optional = { limits, expiresAtMs, revokedAtMs, oldSecret }
        const after = { ...rest, ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)) } as ApiKey
        await keys.insert(before, anIssue())
        await keys.insert(anApiKey('two'), anIssue())
        expect(await keys.update(after, aChange())).to.equal('updated')
        expect(await keys.findById('key_one')).to.deep.equal(after)
        expect(await keys.findBySecretHash(after.secretHash)).to.deep.equal(after)
        expect(await (await opened.reopen()).findBySecretHash(after.oldSecret?.hash ?? after.secretHash)).to.deep.equal(after)
        expect(await keys.findById('key_two')).to.deep.equal(anApiKey('two'))
      })
    }

    it('no longer finds a key by a secret that an update removed', async () => {
      await keys.insert(anApiKey('one'), anIssue())
      const rotated = anApiKey('one', { secretHash: aSecretHash('two'), oldSecret: anOldSecret({ hash: aSecretHash('one') }), version: 2 })
      await keys.update(rotated, aChange())
      const finished = anApiKey('one', { secretHash: aSecretHash('three'), version: 3 })
      await keys.update(finished, aChange())
      for (const name of ['one', 'two']) expect(await keys.findBySecretHash(aSecretHash(name))).to.equal(undefined)
      expect(await keys.findBySecretHash(aSecretHash('three'))).to.deep.equal(finished)
    })

    it('finds a key by a secret at any time during its rotation on another replica', async () => {
      const other = await opened.reopen()
      await keys.insert(anApiKey('one'), anIssue())
      const rotated = anApiKey('one', { secretHash: aSecretHash('new'), oldSecret: anOldSecret({ hash: aSecretHash('one') }), version: 2 })
      const lookups = Array.from({ length: 20 }, () => keys.findBySecretHash(aSecretHash('one')))
      const update = other.update(rotated, aChange())
      lookups.push(...Array.from({ length: 20 }, () => keys.findBySecretHash(aSecretHash('one'))))
      expect(await update).to.equal('updated')
      for (const found of await Promise.all(lookups)) expect(found).to.include({ keyId: 'key_one' })
    })

    it('changes nothing, and returns conflict, unless the version is the next one and the key exists', async () => {
      const stored = anApiKey('one', { version: 4 })
      await keys.insert(stored, anIssue())
      for (const version of [1, 3, 4, 6])
        expect(await keys.update(anApiKey('one', { plan: 'pro', version }), aChange())).to.equal('conflict')
      expect(await keys.update(anApiKey('two', { version: 5 }), aChange())).to.equal('conflict')
      expect(await keys.list({})).to.deep.equal([stored])
    })

    it('throws, and changes nothing, if another key has the secret', async () => {
      await keys.insert(anApiKey('one'), anIssue())
      await keys.insert(anApiKey('two'), anIssue())
      const taken = anApiKey('two', { secretHash: aSecretHash('one'), version: 2 })
      expect(await rejection(keys.update(taken, aChange()))).to.be.instanceOf(Error)
      expect(await keys.list({})).to.deep.equal([anApiKey('one'), anApiKey('two')])
    })

    it('stores exactly one of 20 concurrent updates to the same version on two replicas', async () => {
      const replicas = [keys, await opened.reopen()] as const
      await keys.insert(anApiKey('one'), anIssue())
      const updates = Array.from({ length: 20 }, (_, index) => anApiKey('one', { limits: { minute: index + 1, day: 100 }, version: 2 }))
      const outcomes = await Promise.all(updates.map((key, index) => (replicas[index % 2] as ApiKeyStore).update(key, aChange())))
      expect(outcomes.filter((outcome) => outcome === 'updated')).to.have.lengthOf(1)
      expect(await keys.findById('key_one')).to.deep.equal(updates[outcomes.indexOf('updated')])
    })

    it('applies each of 10 concurrent changes on two replicas, one after the other', async () => {
      const replicas = [keys, await opened.reopen()] as const
      await keys.insert(anApiKey('one'), anIssue())
      const changed = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          changeApiKey({ apiKeyStore: replicas[index % 2] as ApiKeyStore, clock }, 'key_one', 'alice', (key) => {
            const minute = (key.limits?.minute ?? 0) + 1
            return { key: { ...key, limits: { minute, day: 100 } }, change: { action: 'plan-changed', before: {}, after: {} } }
          }),
        ),
      )
      expect(changed.map(({ key }) => key.version).toSorted((a, b) => a - b)).to.deep.equal([2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
      expect(await keys.findById('key_one')).to.deep.include({ version: 11, limits: { minute: 10, day: 100 } })
    })

    /** Uses may be recorded late. */
    async function untilRecorded(keyId: string, atLeastMs: number): Promise<StoredApiKey> {
      const isRecorded = async () => ((await keys.findById(keyId))?.lastUsedAtMs ?? 0) >= atLeastMs
      await until(`a use of ${keyId} is recorded`, isRecorded)
      return (await keys.findById(keyId)) as StoredApiKey
    }

    it('records the use of a key for operators only, and changes nothing else', async () => {
      const key = anApiKey('one', { limits: { minute: 1, day: 2 }, expiresAtMs: clock.nowMs() + 1 })
      await keys.insert(key, anIssue())
      expect(await keys.findBySecretHash(key.secretHash)).to.deep.equal(key)
      expect(await untilRecorded('key_one', 1)).to.deep.equal({ ...key, lastUsedAtMs: clock.nowMs() })
      expect(await (await opened.reopen()).list({})).to.deep.equal([{ ...key, lastUsedAtMs: clock.nowMs() }])
      expect(await keys.findBySecretHash(key.secretHash)).to.deep.equal(key)
    })

    it('records uses accurate to the hour, never in the future', async () => {
      await keys.insert(anApiKey('one'), anIssue())
      for (let use = 0; use < 20; use++) {
        await keys.findBySecretHash(aSecretHash('one'))
        const { lastUsedAtMs } = await untilRecorded('key_one', clock.nowMs() - HOUR_MS + 1)
        expect(lastUsedAtMs).to.be.at.most(clock.nowMs())
        clock.advanceMs(HOUR_MS / 3 + 1)
      }
    })

    it('records no use of keys that are revoked, expired or only shown to operators', async () => {
      const unused = [anApiKey('revoked', { revokedAtMs: 1 }), anApiKey('expired', { expiresAtMs: clock.nowMs() }), anApiKey('seen')]
      for (const key of [...unused, anApiKey('used')]) await keys.insert(key, anIssue())
      for (const secret of ['revoked', 'expired']) await keys.findBySecretHash(aSecretHash(secret))
      await keys.findById('key_seen')
      await keys.list({})

      await keys.findBySecretHash(aSecretHash('used'))
      await untilRecorded('key_used', 1)
      for (const key of unused) expect(await keys.findById(key.keyId)).to.deep.equal(key)
    })

    it('records the use of an old secret with it, until its grace period ends', async () => {
      const oldSecret = anOldSecret({ expiresAtMs: clock.nowMs() + 2 * HOUR_MS })
      const key = anApiKey('one', { oldSecret })
      await keys.insert(key, anIssue())
      const usedAtMs = clock.nowMs()
      expect(await keys.findBySecretHash(oldSecret.hash)).to.deep.equal(key)
      expect(await untilRecorded('key_one', 1)).to.deep.equal({
        ...key,
        lastUsedAtMs: usedAtMs,
        oldSecret: { ...oldSecret, lastUsedAtMs: usedAtMs },
      })

      clock.advanceMs(HOUR_MS)
      await keys.findBySecretHash(key.secretHash)
      expect((await untilRecorded('key_one', clock.nowMs())).oldSecret).to.include({ lastUsedAtMs: usedAtMs })
      clock.advanceMs(HOUR_MS)
      await keys.findBySecretHash(oldSecret.hash)
      await keys.findBySecretHash(key.secretHash)
      expect((await untilRecorded('key_one', clock.nowMs())).oldSecret).to.include({ lastUsedAtMs: usedAtMs })
    })

    it('keeps the recorded use through updates, even if they do not contain it', async () => {
      await keys.insert(anApiKey('one'), anIssue())
      await keys.findBySecretHash(aSecretHash('one'))
      const { lastUsedAtMs } = await untilRecorded('key_one', 1)
      await keys.update(anApiKey('one', { plan: 'pro', version: 2 }), aChange())
      await keys.update({ ...anApiKey('one', { version: 3 }), lastUsedAtMs: 1 }, aChange())
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
      await keys.insert(anApiKey('one'), anIssue())
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
        keys.insert(anApiKey('two'), anIssue()),
        keys.update(anApiKey('one', { version: 2 }), aChange()),
      ]
      for (const reason of await Promise.all(calls.map(rejection))) expect(reason).to.be.instanceOf(StoreUnavailable)
    })

    it('loses no key, and applies failed writes completely or not at all', async () => {
      const updated = anApiKey('one', { plan: 'pro', version: 2 })
      await outage.begin()
      await Promise.all([keys.insert(anApiKey('two'), anIssue()), keys.update(updated, aChange())].map(rejection))
      await outage.end()
      expect([undefined, anApiKey('two')]).to.deep.include(await keys.findById('key_two'))
      expect([anApiKey('one'), updated]).to.deep.include(await keys.findById('key_one'))
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
