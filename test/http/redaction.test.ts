import { expect } from 'chai'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { IssuedApiKey } from '../../src/core/use-cases/issue-api-key.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'
import { withApi } from '../support/api.js'

const secrets = new CryptoApiKeySecrets()

/** Returns the parts of a key that must not be logged. The last four characters are the part of the hint that differs between keys. */
function hiddenParts({ key, secret }: IssuedApiKey): string[] {
  return [secret, key.secretHash, key.secretHash.slice(0, 16), Buffer.from(key.secretHash, 'hex').toString('base64'), key.hint]
}

describe('the log at every level', () => {
  it('contains no secret, no hash of a secret and no hint, whether requests are served, rejected or fail', () => {
    const pets = new UnreliablePetStore()
    const apiKeys = new WatchedApiKeyStore()
    return withApi({ config: { logLevel: 'trace' }, doubles: { pets, apiKeyStore: apiKeys } }, async (api) => {
      const issued = await api.issueKey('enterprise', { limits: { minute: 100, day: 4 } })
      const revoked = await api.issueKey()
      const { secret: key } = issued
      await api.parts.apiKeyAdmin.revoke(revoked.key.keyId, 'alice')
      const unknown = secrets.generate()

      await api.send('/v1/pets', { key })
      for (const failure of [
        new StoreUnavailable('unavailable', { cause: new Error('connection refused') }),
        new TypeError('unexpected'),
      ]) {
        pets.failure = failure
        await api.send('/v1/pets', { key })
        pets.failure = undefined
        apiKeys.failWith(failure)
        await api.send('/v1/pets', { key: secrets.generate().secret })
        apiKeys.failWith()
      }
      for (let request = 0; request < 5; request += 1) await api.send('/v1/pets', { key })
      await api.send('/v1/pets', { key: revoked.secret })
      await api.send('/v1/pets', { key: unknown.secret })
      for (let request = 0; request < 40; request += 1) await api.send('/v1/pets', { key: 'rubbish' })
      await api.send('/v1/pets', { key: revoked.secret })
      await api.parts.apiKeyAdmin.changePlan(issued.key.keyId, { plan: 'pro' }, 'alice')
      await api.send('/v1/pets', { key })

      const codes = new Set(api.logLines.map(({ code }) => code))
      expect([...codes]).to.include.members([
        'service_unavailable',
        'internal_error',
        'daily_quota_exceeded',
        'invalid_api_key',
        'too_many_failed_authentications',
      ])
      const log = JSON.stringify(api.logLines)
      expect(log).to.include(issued.key.keyId)
      for (const hidden of [...hiddenParts(issued), ...hiddenParts(revoked), ...apiKeys.queries, unknown.secret, unknown.hint]) {
        expect(log).to.not.include(hidden)
      }
    })
  })
})
