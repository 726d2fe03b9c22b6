import { expect } from 'chai'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { LimitsRequired } from '../../src/core/errors.js'
import { PLAN_NAMES } from '../../src/core/plan.js'
import type { ApiKeySecret } from '../../src/core/ports/api-key-secrets.js'
import { makeIssueApiKey } from '../../src/core/use-cases/issue-api-key.js'
import { somePlans } from '../support/builders.js'
import { rejection } from '../contracts/rejection.js'
import { MovableClock } from '../support/movable-clock.js'

const LIMITS = { minute: 5, day: 50 }

describe('issuing an API key', () => {
  it('stores what was asked for, with the hash of a new secret and the time', async () => {
    const { issueApiKey, apiKeyStore, secrets, clock } = anIssuer()
    const expiresAtMs = clock.nowMs() + 1000
    const { key, secret } = await issueApiKey({ owner: 'Acme', plan: 'pro', limits: LIMITS, expiresAtMs })
    expect(key).to.include({ owner: 'Acme', plan: 'pro', expiresAtMs, createdAtMs: clock.nowMs(), secretHash: secrets.hash(secret) })
    expect(key.limits).to.deep.equal(LIMITS)
    expect(await apiKeyStore.findBySecretHash(key.secretHash)).to.deep.equal(key)
  })

  it('leaves out what was not asked for', async () => {
    const { issueApiKey } = anIssuer()
    const { key } = await issueApiKey({ owner: 'Acme', plan: 'free' })
    expect(key).to.have.all.keys('keyId', 'secretHash', 'hint', 'owner', 'plan', 'createdAtMs', 'version')
  })

  it('stores the secret nowhere', async () => {
    const { issueApiKey } = anIssuer()
    const { key, secret } = await issueApiKey({ owner: 'Acme', plan: 'free' })
    expect(JSON.stringify(key)).not.to.include(secret)
    expect(JSON.stringify(key)).not.to.include(secret.slice(9, 39))
  })

  it('makes a new key each time, for the same owner too', async () => {
    const { issueApiKey } = anIssuer()
    const issued = await Promise.all(Array.from({ length: 20 }, () => issueApiKey({ owner: 'Acme', plan: 'free' })))
    expect(new Set(issued.map(({ secret }) => secret)).size).to.equal(20)
    expect(new Set(issued.map(({ key }) => key.keyId)).size).to.equal(20)
  })

  for (const plan of PLAN_NAMES) {
    it(`on ${plan} takes limits of its own`, async () => {
      const { key } = await anIssuer().issueApiKey({ owner: 'Acme', plan, limits: LIMITS })
      expect(key.limits).to.deep.equal(LIMITS)
    })
  }

  it('on a plan without limits is refused unless the key has its own, and nothing is stored', async () => {
    const store = new MemoryApiKeyStore(new MovableClock())
    const { issueApiKey } = anIssuer({ apiKeyStore: store, secrets: new OneSecret() })
    expect(await rejection(issueApiKey({ owner: 'Acme', plan: 'enterprise' })))
      .to.be.instanceOf(LimitsRequired)
      .with.property('code', 'limits_required')
    expect(await store.findBySecretHash(THE_SECRET.secretHash)).to.equal(undefined)
  })

  it('fails when the secret is not new, and leaves the first key as it was', async () => {
    const { issueApiKey, apiKeyStore } = anIssuer({ secrets: new OneSecret() })
    const { key } = await issueApiKey({ owner: 'Acme', plan: 'free' })
    expect(await rejection(issueApiKey({ owner: 'Other', plan: 'business' }))).to.be.instanceOf(Error)
    expect(await apiKeyStore.findBySecretHash(key.secretHash)).to.deep.equal(key)
  })
})

const THE_SECRET = new CryptoApiKeySecrets().generate()

class OneSecret extends CryptoApiKeySecrets {
  override generate(): ApiKeySecret {
    return THE_SECRET
  }
}

function anIssuer({ apiKeyStore = new MemoryApiKeyStore(new MovableClock()), secrets = new CryptoApiKeySecrets() } = {}) {
  const clock = new MovableClock()
  return { issueApiKey: makeIssueApiKey({ apiKeyStore, secrets, clock, plans: somePlans() }), apiKeyStore, secrets, clock }
}
