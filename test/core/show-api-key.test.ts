import { expect } from 'chai'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { ApiKeyNotFound } from '../../src/core/errors.js'
import { makeShowApiKey } from '../../src/core/use-cases/show-api-key.js'
import { anApiKey } from '../support/builders.js'
import { rejection } from '../contracts/rejection.js'
import { MovableClock } from '../support/movable-clock.js'

describe('showing an API key', () => {
  it('gives the key of that id and no other, revoked and expired ones too', async () => {
    const { showApiKey, apiKeyStore } = aDesk()
    const keys = [anApiKey('one'), anApiKey('two', { revokedAtMs: 1 }), anApiKey('three', { expiresAtMs: 1 })]
    for (const key of keys) await apiKeyStore.insert(key)
    for (const key of keys) expect(await showApiKey(key.keyId)).to.deep.equal(key)
  })

  it('tells when it was last used, and is no use itself', async () => {
    const { showApiKey, apiKeyStore, clock } = aDesk()
    const key = anApiKey()
    await apiKeyStore.insert(key)
    await showApiKey(key.keyId)
    expect(await showApiKey(key.keyId)).to.not.have.property('lastUsedAtMs')
    await apiKeyStore.findBySecretHash(key.secretHash)
    expect(await showApiKey(key.keyId)).to.have.property('lastUsedAtMs', clock.nowMs())
  })

  it('that does not exist is refused with its id', async () => {
    const { showApiKey, apiKeyStore } = aDesk()
    await apiKeyStore.insert(anApiKey('one'))
    const error = await rejection(showApiKey('key_other'))
    expect(error).to.be.instanceOf(ApiKeyNotFound).and.include({ code: 'api_key_not_found', message: 'No API key has the id key_other' })
  })
})

function aDesk() {
  const clock = new MovableClock()
  const apiKeyStore = new MemoryApiKeyStore(clock)
  return { showApiKey: makeShowApiKey({ apiKeyStore }), apiKeyStore, clock }
}
