import { expect } from 'chai'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { ApiKeyNotFound, LimitsRequired } from '../../src/core/errors.js'
import { makeChangeApiKeyPlan } from '../../src/core/use-cases/change-api-key-plan.js'
import { anApiKey, somePlans } from '../support/builders.js'
import { rejection } from '../contracts/rejection.js'
import { MovableClock } from '../support/movable-clock.js'

const LIMITS = { minute: 5, day: 50 }

describe('changing the plan of an API key', () => {
  it('puts it on the new plan, one version later, and changes nothing else', async () => {
    const key = anApiKey('one', { plan: 'free', expiresAtMs: Date.UTC(2030, 0) })
    const { changeApiKeyPlan, apiKeyStore } = await aDeskWith(key)
    const changed = await changeApiKeyPlan(key.keyId, { plan: 'pro' })
    expect(changed).to.deep.equal({ ...key, plan: 'pro', version: 2 })
    expect(await apiKeyStore.findById(key.keyId)).to.deep.equal(changed)
  })

  it('leaves other keys of the same owner alone', async () => {
    const [key, other] = [anApiKey('one'), anApiKey('two')]
    const { changeApiKeyPlan, apiKeyStore } = await aDeskWith(key, other)
    await changeApiKeyPlan(key.keyId, { plan: 'pro' })
    expect(await apiKeyStore.findById(other.keyId)).to.deep.equal(other)
  })

  it('takes limits of its own, on any plan', async () => {
    const key = anApiKey('one')
    const { changeApiKeyPlan } = await aDeskWith(key)
    for (const plan of ['pro', 'enterprise', 'free'] as const) {
      expect(await changeApiKeyPlan(key.keyId, { plan, limits: LIMITS })).to.deep.include({ plan, limits: LIMITS })
    }
  })

  it('ends limits of its own that are not given again', async () => {
    const key = anApiKey('one', { plan: 'enterprise', limits: LIMITS })
    const { changeApiKeyPlan } = await aDeskWith(key)
    expect(await changeApiKeyPlan(key.keyId, { plan: 'business' })).to.not.have.property('limits')
  })

  it('to one without limits is refused unless the key is given its own, those it had before are none, and nothing changes', async () => {
    const key = anApiKey('one', { plan: 'pro', limits: LIMITS })
    const { changeApiKeyPlan, apiKeyStore } = await aDeskWith(key)
    const error = await rejection(changeApiKeyPlan(key.keyId, { plan: 'enterprise' }))
    expect(error)
      .to.be.instanceOf(LimitsRequired)
      .with.property('message')
      .that.matches(/enterprise.*limits.*minute.*day/)
    expect(await apiKeyStore.findById(key.keyId)).to.deep.equal(key)
  })

  it('does not make a revoked key valid again', async () => {
    const key = anApiKey('one', { revokedAtMs: 1 })
    const { changeApiKeyPlan } = await aDeskWith(key)
    expect(await changeApiKeyPlan(key.keyId, { plan: 'pro' })).to.include({ plan: 'pro', revokedAtMs: 1 })
  })

  it('that does not exist is refused with its id', async () => {
    const { changeApiKeyPlan } = await aDeskWith(anApiKey('one'))
    const error = await rejection(changeApiKeyPlan('key_other', { plan: 'pro' }))
    expect(error).to.be.instanceOf(ApiKeyNotFound).with.property('message', 'No API key has the id key_other')
  })
})

async function aDeskWith(...keys: ApiKey[]) {
  const apiKeyStore = new MemoryApiKeyStore(new MovableClock())
  for (const key of keys) await apiKeyStore.insert(key)
  const change = makeChangeApiKeyPlan({ apiKeyStore, quotaControl: new MemoryQuotaStore(new MovableClock()), plans: somePlans() })
  return { changeApiKeyPlan: async (...args: Parameters<typeof change>) => (await change(...args)).key, apiKeyStore }
}
