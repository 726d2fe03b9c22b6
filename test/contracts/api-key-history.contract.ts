import { expect } from 'chai'
import type { ApiKeyChange } from '../../src/core/api-key-change.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { ApiKeyHistory, ApiKeyHistoryFilter } from '../../src/core/ports/api-key-history.js'
import type { ApiKeyStore } from '../../src/core/ports/api-key-store.js'
import { aChange, anApiKey, anIssue } from '../support/builders.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { rejection } from './rejection.js'

/** A key store and a history that share their data. */
export interface HistoryAdapters {
  readonly apiKeys: ApiKeyStore
  readonly history: ApiKeyHistory
}

type OpenHistory = () => Promise<OpenAdapter<HistoryAdapters>>

const EVERY_VALUE: ApiKeyChange['after'] = {
  plan: 'enterprise',
  limits: { minute: 1, day: 2 ** 40 },
  hint: 'pst_live_…xY9z',
  expiresAtMs: 4_000_000_000_001,
  revokedAtMs: 4_000_000_000_000,
  oldSecret: { hint: 'pst_live_…oLd1', expiresAtMs: 3_000_000_000_000 },
  isBanned: true,
}

export function describeApiKeyHistory(name: string, open: OpenHistory, outage?: Outage): void {
  describe(`the history of API keys ${name}`, () => {
    let opened: OpenAdapter<HistoryAdapters>
    let apiKeys: ApiKeyStore
    let history: ApiKeyHistory

    beforeEach(async () => {
      opened = await open()
      ;({ apiKeys, history } = opened.port)
    })

    afterEach(() => opened.close())

    const times = async (filter: ApiKeyHistoryFilter) => (await history.list(filter)).map(({ atMs }) => atMs)

    it('contains the issue, each update and each added change of a key, in this order, on every replica', async () => {
      const changes = [
        anIssue(),
        aChange({ before: EVERY_VALUE, after: { plan: 'free' } }),
        aChange({ action: 'unbanned', by: 'Ünï $where' }),
      ] as const
      await apiKeys.insert(anApiKey('one'), changes[0])
      await apiKeys.update(anApiKey('one', { version: 2 }), changes[1])
      await history.add('key_one', changes[2])
      const expected = changes.map((change) => ({ keyId: 'key_one', owner: 'Acme', ...change }))
      expect(await history.list({ keyId: 'key_one' })).to.deep.equal(expected)
      expect(await (await opened.reopen()).history.list({})).to.deep.equal(expected)
    })

    it('contains nothing for a taken key, a conflict and a key that does not exist', async () => {
      await apiKeys.insert(anApiKey('one'), anIssue())
      await apiKeys.insert(anApiKey('one'), anIssue())
      await apiKeys.update(anApiKey('one', { version: 5 }), aChange())
      await apiKeys.update(anApiKey('two', { version: 2 }), aChange())
      await history.add('key_two', aChange())
      expect(await history.list({})).to.have.lengthOf(1)
      expect(await history.list({ keyId: 'key_two' })).to.deep.equal([])
    })

    it('does not become part of the keys', async () => {
      const key = anApiKey('one', { version: 2 })
      await apiKeys.insert(anApiKey('one'), anIssue())
      await apiKeys.update(key, aChange())
      expect([await apiKeys.findById('key_one'), ...(await apiKeys.list({}))]).to.deep.equal([key, key])
    })

    it('is listed by time, by the key ID, the owner, the time, and all of them', async () => {
      for (const [owner, keyId, atMs] of [
        ['Acme', 'a', 30],
        ['Acme', 'b', 10],
        ['Zoo', 'c', 20],
      ] as const) {
        await apiKeys.insert(anApiKey(keyId, { owner }), anIssue({ atMs }))
        await history.add(`key_${keyId}`, aChange({ atMs: atMs + 15 }))
      }
      for (const [filter, expected] of [
        [{}, [10, 20, 25, 30, 35, 45]],
        [{ keyId: 'key_a' }, [30, 45]],
        [{ owner: 'Acme' }, [10, 25, 30, 45]],
        [{ owner: 'Acm' }, []],
        [{ sinceMs: 25 }, [25, 30, 35, 45]],
        [{ untilMs: 25 }, [10, 20]],
        [{ sinceMs: 20, untilMs: 35 }, [20, 25, 30]],
        [{ owner: 'Acme', sinceMs: 20, untilMs: 45 }, [25, 30]],
        [{ owner: 'Zoo', keyId: 'key_a' }, []],
        [{ limit: 2 }, [35, 45]],
        [{ limit: 99 }, [10, 20, 25, 30, 35, 45]],
        [{ owner: 'Acme', untilMs: 45, limit: 1 }, [30]],
      ] satisfies [ApiKeyHistoryFilter, number[]][]) {
        expect(await times(filter), JSON.stringify(filter)).to.deep.equal(expected)
      }
    })

    it('keeps the order of changes with the same time', async () => {
      await apiKeys.insert(anApiKey('one'), anIssue({ atMs: 1 }))
      const names = Array.from({ length: 12 }, (_, index) => `operator ${index}`)
      for (const by of names) await history.add('key_one', aChange({ atMs: 1, by }))
      expect((await history.list({ limit: 12 })).map(({ by }) => by)).to.deep.equal(names)
    })

    it('loses none of 20 changes that are added concurrently on two replicas', async () => {
      const replicas = [history, (await opened.reopen()).history] as const
      await apiKeys.insert(anApiKey('one'), anIssue())
      await Promise.all(
        Array.from({ length: 20 }, (_, index) => (replicas[index % 2] as ApiKeyHistory).add('key_one', aChange({ atMs: index }))),
      )
      expect(await times({ limit: 30 })).to.have.lengthOf(21)
    })
  })

  if (outage) describeApiKeyHistoryOutages(name, open, outage)
}

export function describeApiKeyHistoryOutages(name: string, open: OpenHistory, outage: Outage): void {
  describe(`the history of API keys ${name}, during an outage`, () => {
    it('throws StoreUnavailable from every method', async () => {
      const { port, close } = await open()
      await port.apiKeys.insert(anApiKey('one'), anIssue())
      try {
        await outage.begin()
        const reasons = await Promise.all([port.history.list({}), port.history.add('key_one', aChange())].map(rejection))
        for (const reason of reasons) expect(reason).to.be.instanceOf(StoreUnavailable)
      } finally {
        await outage.end()
        await close()
      }
    })
  })
}
