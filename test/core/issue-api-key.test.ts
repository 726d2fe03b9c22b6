import { expect } from 'chai'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { LimitsRequired } from '../../src/core/errors.js'
import { PLAN_NAMES } from '../../src/core/plan.js'
import { makeIssueApiKey } from '../../src/core/use-cases/issue-api-key.js'
import { somePlans } from '../support/builders.js'
import { rejection } from '../contracts/rejection.js'
import { MovableClock } from '../support/movable-clock.js'

const LIMITS = { minute: 5, day: 50 }

describe('issuing an API key', () => {
  it('stores the requested fields with the hash of a new secret and the time, on every plan', async () => {
    const { issueApiKey, apiKeyStore, secrets, clock } = anIssuer()
    const expiresAtMs = clock.nowMs() + 1000
    for (const plan of PLAN_NAMES) {
      const { key, secret } = await issueApiKey({ owner: 'Acme', plan, limits: LIMITS, expiresAtMs }, 'alice')
      const expected = { owner: 'Acme', plan, limits: LIMITS, expiresAtMs, createdAtMs: clock.nowMs(), secretHash: secrets.hash(secret) }
      expect(key).to.deep.include(expected)
      expect(await apiKeyStore.findBySecretHash(key.secretHash)).to.deep.equal(key)
    }
  })

  it('stores neither unset fields nor the secret', async () => {
    const { key, secret } = await anIssuer().issueApiKey({ owner: 'Acme', plan: 'free' }, 'alice')
    expect(key).to.have.all.keys('keyId', 'secretHash', 'hint', 'owner', 'plan', 'createdAtMs', 'version')
    expect(JSON.stringify(key)).not.to.include(secret.slice(9, 39))
  })

  it('is rejected, and stores nothing, if neither the key nor its plan has limits', async () => {
    const { issueApiKey, apiKeyStore } = anIssuer()
    expect(await rejection(issueApiKey({ owner: 'Acme', plan: 'enterprise' }, 'alice')))
      .to.be.instanceOf(LimitsRequired)
      .with.property('code', 'limits_required')
    expect(await apiKeyStore.list({})).to.deep.equal([])
  })

  it('fails if the generated secret exists, and leaves the first key unchanged', async () => {
    const secrets = new CryptoApiKeySecrets()
    const generated = secrets.generate()
    secrets.generate = () => generated
    const { issueApiKey, apiKeyStore } = anIssuer(secrets)
    const { key } = await issueApiKey({ owner: 'Acme', plan: 'free' }, 'alice')
    expect(await rejection(issueApiKey({ owner: 'Other', plan: 'business' }, 'alice'))).to.be.instanceOf(Error)
    expect(await apiKeyStore.list({})).to.deep.equal([key])
  })
})

function anIssuer(secrets = new CryptoApiKeySecrets()) {
  const clock = new MovableClock()
  const apiKeyStore = new MemoryApiKeyStore(clock)
  return { issueApiKey: makeIssueApiKey({ apiKeyStore, secrets, clock, plans: somePlans() }), apiKeyStore, secrets, clock }
}
