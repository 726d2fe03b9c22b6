import { expect } from 'chai'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { makeListApiKeys } from '../../src/core/use-cases/list-api-keys.js'
import { anApiKey, shuffled } from '../support/builders.js'
import { MovableClock } from '../support/movable-clock.js'

const NOW_MS = new MovableClock().nowMs()

describe('listing API keys', () => {
  it('without a filter gives all of them, in whatever state, the oldest first', async () => {
    const { list } = await aListOf([
      anApiKey('third', { createdAtMs: 3 }),
      anApiKey('first', { createdAtMs: 1, revokedAtMs: 2 }),
      anApiKey('second', { createdAtMs: 2, expiresAtMs: 3 }),
    ])
    expect(await list({})).to.deep.equal(['key_first', 'key_second', 'key_third'])
  })

  it('gives none where there is none, or none fits', async () => {
    expect(await (await aListOf([])).list({})).to.deep.equal([])
    expect(await (await aListOf([anApiKey()])).list({ owner: 'Other' })).to.deep.equal([])
  })

  it('by owner takes the owner to the letter', async () => {
    const { list } = await aListOf(['Acme', 'acme', 'Acme Ltd', 'Acm'].map((owner) => anApiKey(owner.replace(' ', ''), { owner })))
    expect(await list({ owner: 'Acme' })).to.deep.equal(['key_Acme'])
    expect(await list({ owner: '' })).to.deep.equal([])
  })

  it('by plan takes that plan alone', async () => {
    const { list } = await aListOf([anApiKey('free', { plan: 'free' }), anApiKey('pro', { plan: 'pro' })])
    expect(await list({ plan: 'pro' })).to.deep.equal(['key_pro'])
  })

  it('by state takes the state of now', async () => {
    const { list, clock } = await aListOf([
      anApiKey('lasting'),
      anApiKey('ending', { expiresAtMs: NOW_MS + 1 }),
      anApiKey('ended', { expiresAtMs: NOW_MS }),
      anApiKey('revoked', { revokedAtMs: NOW_MS - 1 }),
      anApiKey('revokedAndEnded', { revokedAtMs: NOW_MS - 1, expiresAtMs: NOW_MS - 1 }),
    ])
    expect(await list({ state: 'active' })).to.have.members(['key_lasting', 'key_ending'])
    expect(await list({ state: 'expired' })).to.have.members(['key_ended'])
    expect(await list({ state: 'revoked' })).to.have.members(['key_revoked', 'key_revokedAndEnded'])

    clock.advanceMs(1)
    expect(await list({ state: 'active' })).to.have.members(['key_lasting'])
    expect(await list({ state: 'expired' })).to.have.members(['key_ended', 'key_ending'])
  })

  it('by several things takes what fits them all', async () => {
    const fitting = { owner: 'Acme', plan: 'pro' } as const
    const { list } = await aListOf([
      anApiKey('fitting', fitting),
      anApiKey('otherOwner', { ...fitting, owner: 'Other' }),
      anApiKey('otherPlan', { ...fitting, plan: 'free' }),
      anApiKey('otherState', { ...fitting, revokedAtMs: 1 }),
    ])
    expect(await list({ ...fitting, state: 'active' })).to.deep.equal(['key_fitting'])
  })
})

/** `list` resolves to key ids. */
async function aListOf(keys: readonly ApiKey[]) {
  const clock = new MovableClock()
  const apiKeyStore = new MemoryApiKeyStore(clock)
  for (const key of shuffled(keys)) await apiKeyStore.insert(key)
  const listApiKeys = makeListApiKeys({ apiKeyStore, clock })
  const list = async (...args: Parameters<typeof listApiKeys>) => (await listApiKeys(...args)).map(({ keyId }) => keyId)
  return { list, clock }
}
