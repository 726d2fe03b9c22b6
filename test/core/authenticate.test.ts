import { expect } from 'chai'
import { MemoryFailedAuthentications } from '../../src/adapters/memory/memory-failed-authentications.js'
import type { Verification } from '../../src/core/ports/api-key-verifier.js'
import { makeAuthenticate } from '../../src/core/use-cases/authenticate.js'
import { anApiKey } from '../support/builders.js'
import { MovableClock } from '../support/movable-clock.js'
import { inSequence } from '../support/verdicts.js'

const ADDRESS = '192.0.2.1'
const PER_MINUTE = 5

describe('authenticating', () => {
  it('returns the result of the verifier for the key that was sent, even if it is empty', async () => {
    const verification: Verification = { kind: 'verified', key: anApiKey() }
    const { authenticate, verified } = anAuthenticator(verification)
    const { signal } = new AbortController()
    for (const secret of ['pst_live_secret', '']) expect(await authenticate({ secret, address: ADDRESS }, signal)).to.equal(verification)
    expect(verified).to.deep.equal([
      ['pst_live_secret', ADDRESS, signal],
      ['', ADDRESS, signal],
    ])
  })

  it('counts no failure for a missing key, and reports the remaining failures of its IP address, even if there are 0', async () => {
    const { authenticate, failedAuthentications } = anAuthenticator()
    for (const remaining of [4, 3, 2, 1, 0]) {
      const { quota } = await failedAuthentications.count(ADDRESS)
      expect(quota.remaining).to.equal(remaining)
      for (const missing of await inSequence(3, () => authenticate({ address: ADDRESS })))
        expect(missing).to.deep.equal({ kind: 'missing', quota })
    }
  })
})

function anAuthenticator(verification?: Verification) {
  const failedAuthentications = new MemoryFailedAuthentications(PER_MINUTE, new MovableClock())
  const verified: [secret: string, address: string, signal?: AbortSignal][] = []
  const apiKeyVerifier = {
    async verify(...sent: [secret: string, address: string, signal?: AbortSignal]): Promise<Verification> {
      verified.push(sent)
      return verification ?? Promise.reject(new Error('No key was sent'))
    },
    forget: () => {},
  }
  return { authenticate: makeAuthenticate({ apiKeyVerifier, failedAuthentications }), failedAuthentications, verified }
}
