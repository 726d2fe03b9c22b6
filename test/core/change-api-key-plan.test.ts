import { expect } from 'chai'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { ApiKeyNotFound, ApiKeyRevoked } from '../../src/core/errors.js'
import { makeChangeApiKeyPlan } from '../../src/core/use-cases/change-api-key-plan.js'
import { anApiKey, anIssue, somePlans } from '../support/builders.js'
import { rejection } from '../contracts/rejection.js'
import { MovableClock } from '../support/movable-clock.js'

// test/core/key-changes.test.ts tests what a change stores and announces.
describe('changing the plan of an API key', () => {
  it('is rejected with the key ID if the key is revoked or does not exist, and announces nothing', async () => {
    const clock = new MovableClock()
    const apiKeyStore = new MemoryApiKeyStore(clock)
    const quotaControl = Object.assign(new MemoryQuotaStore(clock), { announce: () => Promise.reject(new Error('announced')) })
    const changePlan = makeChangeApiKeyPlan({ apiKeyStore, quotaControl, clock, plans: somePlans() })
    const revoked = anApiKey('one', { revokedAtMs: 1 })
    await apiKeyStore.insert(revoked, anIssue())
    expect(await rejection(changePlan('key_one', { plan: 'pro' }, 'alice')))
      .to.be.instanceOf(ApiKeyRevoked)
      .and.include({ code: 'api_key_revoked', message: 'API key key_one is revoked, so its plan cannot be changed' })
    expect(await rejection(changePlan('key_other', { plan: 'pro' }, 'alice')))
      .to.be.instanceOf(ApiKeyNotFound)
      .and.include({ code: 'api_key_not_found', message: 'No API key has the ID key_other' })
    expect(await apiKeyStore.findById('key_one')).to.deep.equal(revoked)
  })
})
