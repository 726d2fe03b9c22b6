import { expect } from 'chai'
import { MemoryApiKeyHistory } from '../../src/adapters/memory/memory-api-key-history.js'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { ApiKeyExpired, ApiKeyNotFound, ApiKeyRevoked, RotationInProgress, StoreUnavailable } from '../../src/core/errors.js'
import { makeChangeApiKeyPlan } from '../../src/core/use-cases/change-api-key-plan.js'
import { makeFinishRotation } from '../../src/core/use-cases/finish-rotation.js'
import { makeRotateApiKey, RotationUnconfirmed } from '../../src/core/use-cases/rotate-api-key.js'
import { rejection } from '../contracts/rejection.js'
import { anApiKey, anIssue, anOldSecret, aSecretHash, somePlans } from '../support/builders.js'
import { MovableClock } from '../support/movable-clock.js'

const HOUR_MS = 3_600_000
const GRACE = { graceMs: HOUR_MS }

describe('rotating an API key', () => {
  it('stores the hash of a new secret and the end of the old one, and changes nothing else', async () => {
    const { rotate, apiKeyStore, secrets, clock, key } = await aRotation({ plan: 'pro', limits: { minute: 1, day: 2 } })
    const { secret, key: rotated, takesEffect } = await rotate('key_one', GRACE, 'alice')
    const oldSecret = { hash: key.secretHash, hint: key.hint, expiresAtMs: clock.nowMs() + HOUR_MS }
    expect(rotated).to.deep.equal({
      ...key,
      secretHash: secrets.hash(secret),
      hint: `pst_live_…${secret.slice(-4)}`,
      oldSecret,
      version: 2,
    })
    expect(takesEffect).to.equal('at once')
    expect(await apiKeyStore.findById('key_one')).to.deep.equal(rotated)
    expect(JSON.stringify(rotated)).not.to.include(secret.slice(9, 39))
  })

  it('announces the new version after it is stored, and takes effect within 10 s if it cannot', async () => {
    const { rotate, finish, announced, fail } = await aRotation()
    await rotate('key_one', GRACE, 'alice')
    expect(announced).to.deep.equal([['key_one', 2]])
    fail.announce = new StoreUnavailable('Redis is unavailable')
    expect(await finish('key_one', 'alice')).to.include({ takesEffect: 'within 10 s' })
  })

  it('is recorded with the operator and the hints of the secrets, but without their hashes', async () => {
    const { rotate, finish, history, clock, key } = await aRotation()
    const { key: rotated, secret } = await rotate('key_one', GRACE, 'alice')
    clock.advanceSeconds(5)
    await finish('key_one', 'bob')
    const oldSecret = { hint: key.hint, expiresAtMs: clock.nowMs() - 5_000 + HOUR_MS }
    const changes = await history.list({ keyId: 'key_one' })
    expect(changes.slice(1)).to.deep.equal(
      [
        {
          atMs: clock.nowMs() - 5_000,
          by: 'alice',
          action: 'rotated',
          before: { hint: key.hint },
          after: { hint: rotated.hint, oldSecret },
        },
        { atMs: clock.nowMs(), by: 'bob', action: 'rotation-finished', before: { oldSecret }, after: {} },
      ].map((change) => ({ keyId: 'key_one', owner: 'Acme', ...change })),
    )
    for (const hidden of [key.secretHash, rotated.secretHash, secret]) expect(JSON.stringify(changes)).not.to.include(hidden)
  })

  it('ends the grace period at a full second, rounded up, and not later than the key expires', async () => {
    for (const [graceMs, lifetimeMs, expectedMs] of [
      [1, undefined, 1_000],
      [1_000, undefined, 1_000],
      [1_001, undefined, 2_000],
      [HOUR_MS, 5_500, 5_500],
      [HOUR_MS, 2 * HOUR_MS, HOUR_MS],
    ] as const) {
      const { rotate, clock } = await aRotation((nowMs) => (lifetimeMs === undefined ? {} : { expiresAtMs: nowMs + lifetimeMs }))
      const { key } = await rotate('key_one', { graceMs }, 'alice')
      expect((key.oldSecret?.expiresAtMs ?? 0) - clock.nowMs(), `${graceMs}`).to.equal(expectedMs)
    }
  })

  it('without a grace period leaves no old secret, and may be repeated at once', async () => {
    const { rotate } = await aRotation()
    for (const version of [2, 3]) {
      const { key } = await rotate('key_one', { graceMs: 0 }, 'alice')
      expect(key).to.include({ version }).and.not.have.property('oldSecret')
    }
  })

  it('is rejected while an earlier old secret is valid, and possible from the end of its grace period on', async () => {
    const { rotate, clock, apiKeyStore } = await aRotation()
    const { key: rotated } = await rotate('key_one', GRACE, 'alice')
    clock.advanceMs(HOUR_MS - 1)
    for (const graceMs of [0, HOUR_MS])
      expect(await rejection(rotate('key_one', { graceMs }, 'alice'))).to.be.instanceOf(RotationInProgress)
    expect(await apiKeyStore.findById('key_one')).to.deep.equal(rotated)
    clock.advanceMs(1)
    expect((await rotate('key_one', GRACE, 'alice')).key.oldSecret).to.include({ hash: rotated.secretHash })
  })

  for (const [what, state, error] of [
    ['revoked', { revokedAtMs: 1 }, ApiKeyRevoked],
    ['expired', { expiresAtMs: 1 }, ApiKeyExpired],
  ] as const) {
    it(`is rejected, and changes and announces nothing, if the key is ${what}`, async () => {
      const { rotate, apiKeyStore, announced, history, key } = await aRotation(state)
      expect(await rejection(rotate('key_one', GRACE, 'alice'))).to.be.instanceOf(error)
      expect(await apiKeyStore.findById('key_one')).to.deep.equal(key)
      expect([announced, await history.list({})].map(({ length }) => length)).to.deep.equal([0, 1])
    })
  }

  it('throws ApiKeyNotFound for an unknown key', async () => {
    const { rotate, finish } = await aRotation()
    expect(await rejection(rotate('key_two', GRACE, 'alice'))).to.be.instanceOf(ApiKeyNotFound)
    expect(await rejection(finish('key_two', 'alice'))).to.be.instanceOf(ApiKeyNotFound)
  })

  for (const graceMs of [0, HOUR_MS]) {
    it(`succeeds once if five commands rotate the key at the same time, with a grace period of ${graceMs} ms`, async () => {
      const { rotate, secrets, apiKeyStore, key } = await aRotation()
      const settled = await Promise.allSettled(Array.from({ length: 5 }, () => rotate('key_one', { graceMs }, 'alice')))
      const rotated = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
      const errors = settled.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
      expect(rotated).to.have.lengthOf(1)
      for (const error of errors) expect(error).to.be.instanceOf(RotationInProgress)
      const stored = await apiKeyStore.findById('key_one')
      expect(stored).to.include({ version: 2, secretHash: secrets.hash(rotated[0]?.secret ?? '') })
      expect(stored?.oldSecret?.hash).to.equal(graceMs === 0 ? undefined : key.secretHash)
    })
  }

  it('succeeds although the plan changes at the same time, and neither change is lost', async () => {
    const { rotate, changePlan, apiKeyStore } = await aRotation()
    await Promise.all([rotate('key_one', GRACE, 'alice'), changePlan('key_one', { plan: 'pro' }, 'bob')])
    expect(await apiKeyStore.findById('key_one'))
      .to.include({ plan: 'pro', version: 3 })
      .and.have.property('oldSecret')
  })

  it('throws the new secret with the error if it is unknown whether the rotation was stored', async () => {
    const { rotate, fail, secrets } = await aRotation()
    fail.update = new StoreUnavailable('MongoDB is unavailable', { cause: new Error('timed out') })
    const error = await rejection(rotate('key_one', GRACE, 'alice'))
    if (!(error instanceof RotationUnconfirmed)) throw error
    expect(secrets.hash(error.secret)).to.be.a('string')
    expect(error.reason)
      .to.match(/^MongoDB is unavailable; the key may have been rotated anyway.*: timed out$/)
      .and.not.include(error.secret)
  })

  it('throws the outage itself if the key could not even be read', async () => {
    const { rotate, fail } = await aRotation()
    fail.findById = new StoreUnavailable('MongoDB is unavailable')
    expect(await rejection(rotate('key_one', GRACE, 'alice'))).to.equal(fail.findById)
  })
})

describe('finishing the rotation of an API key', () => {
  it('removes the old secret, and announces the new version', async () => {
    const { finish, apiKeyStore, announced, key } = await aRotation({ oldSecret: anOldSecret() })
    const { key: finished } = await finish('key_one', 'alice')
    expect(finished).to.include({ version: 2, secretHash: key.secretHash }).and.not.have.property('oldSecret')
    expect(await apiKeyStore.findBySecretHash(aSecretHash('old'))).to.equal(undefined)
    expect(announced).to.deep.equal([['key_one', 2]])
  })

  it('twice changes nothing more, and announces the change again, because the first announcement may be lost', async () => {
    const { finish, announced, history } = await aRotation({ oldSecret: anOldSecret() })
    const { key } = await finish('key_one', 'alice')
    expect((await finish('key_one', 'alice')).key).to.deep.equal(key)
    expect(announced).to.deep.equal([
      ['key_one', 2],
      ['key_one', 2],
    ])
    expect(await history.list({})).to.have.lengthOf(2)
  })
})

/** The use cases, with one key. */
async function aRotation(overrides: Partial<ApiKey> | ((nowMs: number) => Partial<ApiKey>) = {}) {
  const clock = new MovableClock()
  const history = new MemoryApiKeyHistory()
  const apiKeyStore = new MemoryApiKeyStore(clock, history)
  const secrets = new CryptoApiKeySecrets()
  const key = anApiKey('one', typeof overrides === 'function' ? overrides(clock.nowMs()) : overrides)
  await apiKeyStore.insert(key, anIssue())
  const announced: [string, number][] = []
  const fail: { announce?: Error; update?: Error; findById?: Error } = {}
  const failing = new Proxy(apiKeyStore, {
    get: (store, name) => {
      const error = fail[name as keyof typeof fail]
      const method = Reflect.get(store, name) as (...args: unknown[]) => unknown
      return error ? () => Promise.reject(error) : method.bind(store)
    },
  })
  const quotaControl = Object.assign(new MemoryQuotaStore(clock), {
    async announce(keyId: string, version: number) {
      if (fail.announce) throw fail.announce
      announced.push([keyId, version])
    },
  })
  const ports = { apiKeyStore: failing, quotaControl, secrets, clock, plans: somePlans() }
  return {
    ...{ key, clock, history, apiKeyStore, secrets, announced, fail },
    rotate: makeRotateApiKey(ports),
    finish: makeFinishRotation(ports),
    changePlan: makeChangeApiKeyPlan(ports),
  }
}
