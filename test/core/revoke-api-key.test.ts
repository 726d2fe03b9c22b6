import { expect } from 'chai'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { isUsable } from '../../src/core/api-key.js'
import { ApiKeyNotFound } from '../../src/core/errors.js'
import { makeRevokeApiKey } from '../../src/core/use-cases/revoke-api-key.js'
import { anApiKey } from '../support/builders.js'
import { rejection } from '../contracts/rejection.js'
import { MovableClock } from '../support/movable-clock.js'

describe('revoking an API key', () => {
  it('makes it unusable from now on, one version later, and changes nothing else', async () => {
    const key = anApiKey('one', { plan: 'enterprise', limits: { minute: 5, day: 50 } })
    const { revokeApiKey, apiKeyStore, clock } = await aDeskWith(key)
    const revoked = await revokeApiKey(key.keyId)
    expect(revoked).to.deep.equal({ ...key, revokedAtMs: clock.nowMs(), version: 2 })
    expect(isUsable(revoked, clock.nowMs())).to.equal(false)
    expect(await apiKeyStore.findById(key.keyId)).to.deep.equal(revoked)
  })

  it('leaves the other key of the same owner valid, as a rotation needs', async () => {
    const [first, second] = [anApiKey('first'), anApiKey('second')]
    const { revokeApiKey, apiKeyStore } = await aDeskWith(first, second)
    await revokeApiKey(first.keyId)
    expect(await apiKeyStore.findById(second.keyId)).to.deep.equal(second)
  })

  it('again changes nothing: the time of the first stays', async () => {
    const key = anApiKey()
    const { revokeApiKey, clock } = await aDeskWith(key)
    const revoked = await revokeApiKey(key.keyId)
    clock.advanceSeconds(60)
    expect(await revokeApiKey(key.keyId)).to.deep.equal(revoked)
  })

  it('also works on one that has expired', async () => {
    const key = anApiKey('one', { expiresAtMs: 1 })
    const { revokeApiKey, clock } = await aDeskWith(key)
    expect(await revokeApiKey(key.keyId)).to.include({ expiresAtMs: 1, revokedAtMs: clock.nowMs() })
  })

  it('that does not exist is refused with its id', async () => {
    const { revokeApiKey } = await aDeskWith(anApiKey('one'))
    const error = await rejection(revokeApiKey('key_other'))
    expect(error).to.be.instanceOf(ApiKeyNotFound).with.property('message', 'No API key has the id key_other')
  })
})

async function aDeskWith(...keys: ApiKey[]) {
  const clock = new MovableClock()
  const apiKeyStore = new MemoryApiKeyStore(clock)
  for (const key of keys) await apiKeyStore.insert(key)
  const revoke = makeRevokeApiKey({ apiKeyStore, quotaControl: new MemoryQuotaStore(clock), clock })
  return { revokeApiKey: async (keyId: string) => (await revoke(keyId)).key, apiKeyStore, clock }
}
