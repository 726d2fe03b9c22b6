import { expect } from 'chai'
import { MemoryApiKeyHistory } from '../../src/adapters/memory/memory-api-key-history.js'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { announceChange } from '../../src/core/announce-change.js'
import { ApiKeyNotFound, LimitsRequired, StoreUnavailable } from '../../src/core/errors.js'
import type { QuotaControl } from '../../src/core/ports/quota-control.js'
import { makeChangeApiKeyPlan } from '../../src/core/use-cases/change-api-key-plan.js'
import { makeRevokeApiKey } from '../../src/core/use-cases/revoke-api-key.js'
import { makeShowApiKey } from '../../src/core/use-cases/show-api-key.js'
import { makeShowUsage } from '../../src/core/use-cases/show-usage.js'
import { makeUnbanApiKey } from '../../src/core/use-cases/unban-api-key.js'
import { anApiKey, anIssue, somePlans, someQuotaRules } from '../support/builders.js'
import { rejection } from '../contracts/rejection.js'
import { MovableClock } from '../support/movable-clock.js'
import { readUsed } from '../support/read-used.js'
import { takeOne } from '../support/take-one.js'

const LIMITS = { minute: 5, day: 50 }

describe('announcing a change of a key', () => {
  it('announces its key ID and version once, and takes effect at once', async () => {
    const key = anApiKey('one', { version: 4 })
    const { quotaControl, announced } = aControl()
    expect(await announceChange(quotaControl, { key, change: undefined })).to.include({ key, takesEffect: 'at once' })
    expect(announced).to.deep.equal([['key_one', 4]])
  })

  it('takes effect within 10 s if the shared state is unavailable', async () => {
    const key = anApiKey()
    const { quotaControl } = aControl(new StoreUnavailable('Redis is unavailable'))
    expect(await announceChange(quotaControl, { key, change: undefined })).to.include({ key, takesEffect: 'within 10 s' })
  })

  it('throws any other error', async () => {
    const { quotaControl } = aControl(new TypeError('A bug'))
    expect(await rejection(announceChange(quotaControl, { key: anApiKey(), change: undefined }))).to.be.instanceOf(TypeError)
  })
})

describe("changing a key's plan", () => {
  it('stores plan and limits first, then announces the new version', async () => {
    const { changePlan, apiKeyStore, announced } = await someUseCases()
    const { key, takesEffect } = await changePlan('key_one', { plan: 'pro', limits: LIMITS }, 'alice')
    expect(key).to.deep.include({ keyId: 'key_one', plan: 'pro', limits: LIMITS, version: 2 })
    expect(takesEffect).to.equal('at once')
    expect(await apiKeyStore.findById('key_one')).to.deep.equal(key)
    expect(announced).to.deep.equal([['key_one', 2]])
  })

  it('removes the limits of the key unless they are set again', async () => {
    const { changePlan } = await someUseCases({ limits: LIMITS })
    expect((await changePlan('key_one', { plan: 'business' }, 'alice')).key).not.to.have.property('limits')
  })

  it('to a plan without limits requires limits, and otherwise stores and announces nothing', async () => {
    const { changePlan, apiKeyStore, announced } = await someUseCases()
    expect(await rejection(changePlan('key_one', { plan: 'enterprise' }, 'alice'))).to.be.instanceOf(LimitsRequired)
    expect(await apiKeyStore.findById('key_one')).to.include({ plan: 'free', version: 1 })
    expect(announced).to.deep.equal([])
    expect((await changePlan('key_one', { plan: 'enterprise', limits: LIMITS }, 'alice')).key).to.deep.include({ limits: LIMITS })
  })

  it('to the plan and the limits that it has stores nothing, and announces the version again, because an earlier announcement may be lost', async () => {
    for (const subscription of [{ plan: 'pro' }, { plan: 'pro', limits: LIMITS }] as const) {
      const { changePlan, apiKeyStore, apiKeyHistory, announced } = await someUseCases(subscription)
      const stored = await apiKeyStore.findById('key_one')
      expect(await changePlan('key_one', { ...subscription }, 'alice')).to.deep.equal({
        key: stored,
        change: undefined,
        takesEffect: 'at once',
      })
      expect(await apiKeyStore.findById('key_one')).to.deep.equal(stored)
      expect(await apiKeyHistory.list({})).to.have.lengthOf(1)
      expect(announced).to.deep.equal([['key_one', 1]])
    }
  })

  it('is recorded if only a limit of the key differs', async () => {
    for (const limits of [undefined, { ...LIMITS, minute: 6 }, { ...LIMITS, day: 51 }]) {
      const { changePlan, apiKeyHistory } = await someUseCases({ plan: 'pro', limits: LIMITS })
      await changePlan('key_one', { plan: 'pro', ...(limits ? { limits } : {}) }, 'alice')
      expect(await apiKeyHistory.list({})).to.have.lengthOf(2)
    }
  })

  it('throws ApiKeyNotFound for an unknown key, and announces nothing', async () => {
    const { changePlan, announced } = await someUseCases()
    expect(await rejection(changePlan('key_none', { plan: 'pro' }, 'alice'))).to.be.instanceOf(ApiKeyNotFound)
    expect(announced).to.deep.equal([])
  })

  it('is stored although it cannot be announced', async () => {
    const { changePlan, apiKeyStore } = await someUseCases({}, new StoreUnavailable('Redis is unavailable'))
    expect(await changePlan('key_one', { plan: 'pro' }, 'alice')).to.include({ takesEffect: 'within 10 s' })
    expect(await apiKeyStore.findById('key_one')).to.include({ plan: 'pro' })
  })
})

describe('revoking a key', () => {
  it('stores the time first, then announces the new version', async () => {
    const { revoke, apiKeyStore, announced, clock } = await someUseCases()
    const { key, takesEffect } = await revoke('key_one', 'alice')
    expect(key).to.include({ revokedAtMs: clock.nowMs(), version: 2 })
    expect(takesEffect).to.equal('at once')
    expect(await apiKeyStore.findById('key_one')).to.deep.equal(key)
    expect(announced).to.deep.equal([['key_one', 2]])
  })

  it('twice keeps the first revocation time and announces the change again, because the first announcement may be lost', async () => {
    const { revoke, announced, clock } = await someUseCases()
    const { key } = await revoke('key_one', 'alice')
    clock.advanceSeconds(100)
    expect((await revoke('key_one', 'alice')).key).to.deep.equal(key)
    expect(announced).to.deep.equal([
      ['key_one', 2],
      ['key_one', 2],
    ])
  })

  it('throws ApiKeyNotFound for an unknown key', async () => {
    const { revoke, announced } = await someUseCases()
    expect(await rejection(revoke('key_none', 'alice'))).to.be.instanceOf(ApiKeyNotFound)
    expect(announced).to.deep.equal([])
  })

  it('is stored although it cannot be announced', async () => {
    const { revoke, apiKeyStore } = await someUseCases({}, new StoreUnavailable('Redis is unavailable'))
    expect(await revoke('key_one', 'alice')).to.include({ takesEffect: 'within 10 s' })
    expect(await apiKeyStore.findById('key_one')).to.have.property('revokedAtMs')
  })
})

describe('showing the usage of a key', () => {
  it('returns the key and its usage, by the rules of its plan', async () => {
    const { showUsage, quotas } = await someUseCases({ plan: 'pro' })
    await takeOne(quotas, 'key_one', someQuotaRules())
    const { key, usage } = await showUsage('key_one')
    expect(key).to.include({ keyId: 'key_one', plan: 'pro' })
    expect(readUsed(usage)).to.deep.equal([1, 1])
    expect(usage.quota.minute).to.include({ limit: 300, remaining: 299 })
  })

  it('applies the limits of the key before those of its plan', async () => {
    const { showUsage } = await someUseCases({ limits: LIMITS })
    expect((await showUsage('key_one')).usage.quota.day.limit).to.equal(50)
  })

  it('throws ApiKeyNotFound for an unknown key', async () => {
    const { showUsage } = await someUseCases()
    expect(await rejection(showUsage('key_none'))).to.be.instanceOf(ApiKeyNotFound)
  })

  it('throws StoreUnavailable in an outage', async () => {
    const { showUsage } = await someUseCases({}, new StoreUnavailable('Redis is unavailable'))
    expect(await rejection(showUsage('key_one'))).to.be.instanceOf(StoreUnavailable)
  })
})

describe('lifting the ban of a key', () => {
  it('returns the key, and whether it was banned', async () => {
    const { unban, quotas, clock } = await someUseCases()
    expect(await unban('key_one', 'alice')).to.deep.include({ outcome: 'not-banned' })
    const rules = someQuotaRules({ limits: { minute: 1 } })
    for (const elapsedMs of [0, 0, 1_001, ...new Array<number>(60).fill(0)]) {
      clock.advanceMs(elapsedMs)
      await takeOne(quotas, 'key_one', rules)
    }
    const { key, outcome } = await unban('key_one', 'alice')
    expect([key.keyId, outcome]).to.deep.equal(['key_one', 'lifted'])
    expect(await unban('key_one', 'alice')).to.deep.include({ outcome: 'not-banned' })
  })

  it('throws ApiKeyNotFound for an unknown key', async () => {
    const { unban } = await someUseCases()
    expect(await rejection(unban('key_none', 'alice'))).to.be.instanceOf(ApiKeyNotFound)
  })

  it('throws StoreUnavailable in an outage', async () => {
    const { unban } = await someUseCases({}, new StoreUnavailable('Redis is unavailable'))
    expect(await rejection(unban('key_one', 'alice'))).to.be.instanceOf(StoreUnavailable)
  })
})

function aControl(failure?: Error, quotas = new MemoryQuotaStore(new MovableClock())) {
  const announced: [string, number][] = []
  const quotaControl: QuotaControl = {
    async announce(keyId, version) {
      if (failure) throw failure
      announced.push([keyId, version])
      await quotas.announce(keyId, version)
    },
    usage: (keyId, rules) => (failure ? Promise.reject(failure) : quotas.usage(keyId, rules)),
    unban: (keyId) => (failure ? Promise.reject(failure) : quotas.unban(keyId)),
  }
  return { quotaControl, announced }
}

/** The use cases, with one key. */
async function someUseCases(overrides: Parameters<typeof anApiKey>[1] = {}, failure?: Error) {
  const clock = new MovableClock()
  const apiKeyHistory = new MemoryApiKeyHistory()
  const apiKeyStore = new MemoryApiKeyStore(clock, apiKeyHistory)
  await apiKeyStore.insert(anApiKey('one', overrides), anIssue())
  const quotas = new MemoryQuotaStore(clock)
  const { quotaControl, announced } = aControl(failure, quotas)
  const ports = { apiKeyStore, quotaControl, clock, plans: somePlans() }
  const showApiKey = makeShowApiKey(ports)
  return {
    clock,
    apiKeyStore,
    quotas,
    announced,
    changePlan: makeChangeApiKeyPlan(ports),
    revoke: makeRevokeApiKey(ports),
    showUsage: makeShowUsage({ ...ports, showApiKey }),
    unban: makeUnbanApiKey({ ...ports, showApiKey, apiKeyHistory }),
    apiKeyHistory,
  }
}
