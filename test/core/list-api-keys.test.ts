import { expect } from 'chai'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import type { ApiKey } from '../../src/core/api-key.js'
import type { ApiKeyFilter } from '../../src/core/use-cases/list-api-keys.js'
import { makeListApiKeys } from '../../src/core/use-cases/list-api-keys.js'
import { anApiKey, anIssue } from '../support/builders.js'
import { MovableClock } from '../support/movable-clock.js'

const NOW_MS = new MovableClock().nowMs()

describe('listing API keys', () => {
  it('returns the keys that match all filters: exact owner, plan, and current state', async () => {
    const { list } = await aKeyList([
      anApiKey('Acme', { plan: 'pro' }),
      anApiKey('acme', { owner: 'acme' }),
      anApiKey('Ltd', { owner: 'Acme Ltd', plan: 'pro' }),
      anApiKey('revoked', { plan: 'pro', revokedAtMs: 1 }),
    ])
    for (const [filter, expected] of [
      [{}, ['key_Acme', 'key_Ltd', 'key_acme', 'key_revoked']],
      [{ owner: 'Acme' }, ['key_Acme', 'key_revoked']],
      [{ owner: '' }, []],
      [{ plan: 'pro' }, ['key_Acme', 'key_Ltd', 'key_revoked']],
      [{ owner: 'Acme', plan: 'pro', state: 'active' }, ['key_Acme']],
    ] satisfies [ApiKeyFilter, string[]][])
      expect(await list(filter), JSON.stringify(filter)).to.deep.equal(expected)
  })

  it('compares the state with the current time; a revoked key is revoked even if it has expired', async () => {
    const { list, clock } = await aKeyList([
      anApiKey('active'),
      anApiKey('expiring', { expiresAtMs: NOW_MS + 1 }),
      anApiKey('expired', { expiresAtMs: NOW_MS }),
      anApiKey('revoked', { revokedAtMs: NOW_MS - 1 }),
      anApiKey('revokedAndExpired', { revokedAtMs: NOW_MS - 1, expiresAtMs: NOW_MS - 1 }),
    ])
    expect(await list({ state: 'active' })).to.deep.equal(['key_active', 'key_expiring'])
    expect(await list({ state: 'expired' })).to.deep.equal(['key_expired'])
    expect(await list({ state: 'revoked' })).to.deep.equal(['key_revoked', 'key_revokedAndExpired'])

    clock.advanceMs(1)
    expect(await list({ state: 'active' })).to.deep.equal(['key_active'])
    expect(await list({ state: 'expired' })).to.deep.equal(['key_expired', 'key_expiring'])
  })
})

/** `list` resolves to key IDs. All keys are created at the same time and so are listed by key ID. */
async function aKeyList(keys: readonly ApiKey[]) {
  const clock = new MovableClock()
  const apiKeyStore = new MemoryApiKeyStore(clock)
  for (const key of keys) await apiKeyStore.insert(key, anIssue())
  const listApiKeys = makeListApiKeys({ apiKeyStore, clock })
  const list = async (filter: ApiKeyFilter) => (await listApiKeys(filter)).map(({ keyId }) => keyId)
  return { list, clock }
}
