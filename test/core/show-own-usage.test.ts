import { expect } from 'chai'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { Authentication } from '../../src/core/use-cases/authenticate.js'
import { makeShowOwnUsage } from '../../src/core/use-cases/show-own-usage.js'
import { rejection } from '../contracts/rejection.js'
import { anApiKey, somePlans } from '../support/builders.js'
import { MovableClock } from '../support/movable-clock.js'

const CREDENTIALS = { secret: 'pst_live_secret', address: '192.0.2.1' }

describe('showing callers the usage of their key', () => {
  const usageReader = () => new MemoryQuotaStore(new MovableClock())

  /** `reads`: the results of authenticating, in order. */
  function aUseCase(reads: readonly (ApiKey | Authentication)[], store = usageReader()) {
    const remaining = [...reads]
    const forgotten: string[] = []
    const showOwnUsage = makeShowOwnUsage({
      async authenticate() {
        const read = remaining.shift()
        if (!read) throw new Error('Read more often than expected')
        return 'kind' in read ? read : { kind: 'verified', key: read }
      },
      apiKeyVerifier: {
        verify: () => Promise.reject(new Error('Only authentication verifies')),
        forget: (secretHash) => void forgotten.push(secretHash),
      },
      usageReader: store,
      plans: somePlans(),
    })
    return { showOwnUsage, forgotten }
  }

  it('returns the key and its usage, with the limits of its plan or its own limits', async () => {
    for (const [key, limit] of [
      [anApiKey('one', { plan: 'pro' }), 300],
      [anApiKey('one', { plan: 'pro', limits: { minute: 7, day: 9 } }), 7],
    ] as const) {
      const shown = await aUseCase([key]).showOwnUsage(CREDENTIALS)
      expect(shown).to.deep.include({ kind: 'usage', key })
      expect(shown).to.nested.include({ 'usage.windows.minute.limit': limit })
    }
  })

  it('returns the failed authentication', async () => {
    const failed = { kind: 'invalid', quota: { nowMs: 0, limit: 5, remaining: 4, resetSeconds: 60 } } as const
    expect(await aUseCase([failed]).showOwnUsage(CREDENTIALS)).to.equal(failed)
  })

  it('reads a stale record again', async () => {
    const store = usageReader()
    await store.announce('key_one', 2)
    const key = anApiKey('one', { plan: 'business', version: 2 })
    const { showOwnUsage, forgotten } = aUseCase([anApiKey('one', { version: 1 }), key], store)
    expect(await showOwnUsage(CREDENTIALS)).to.deep.include({ kind: 'usage', key })
    expect(forgotten).to.deep.equal([CREDENTIALS.secret])
  })

  it('throws the reason of a signal that is aborted', async () => {
    const reason = new StoreUnavailable('Too late')
    const { showOwnUsage } = aUseCase([anApiKey()])
    expect(await rejection(showOwnUsage(CREDENTIALS, AbortSignal.abort(reason)))).to.equal(reason)
  })
})
