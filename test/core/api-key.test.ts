import { expect } from 'chai'
import type { ApiKey, OldSecret } from '../../src/core/api-key.js'
import { getValidOldSecret, isValidSecret, shouldRecordUse } from '../../src/core/api-key.js'
import { anApiKey, anOldSecret, aSecretHash } from '../support/builders.js'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const HASH = aSecretHash('one')
const OLD_HASH = aSecretHash('old')

describe('the current secret of an API key', () => {
  const isValid = (key: ApiKey, nowMs = NOW_MS) => isValidSecret(key, HASH, nowMs)

  it('is valid at any time if the key neither expires nor is revoked', () => {
    for (const nowMs of [0, NOW_MS, Number.MAX_SAFE_INTEGER]) expect(isValid(anApiKey(), nowMs)).to.equal(true)
  })

  it('is valid until one millisecond before the key expires', () => {
    const key = anApiKey('one', { expiresAtMs: NOW_MS })
    expect([NOW_MS - 1, NOW_MS, NOW_MS + 1].map((nowMs) => isValid(key, nowMs))).to.deep.equal([true, false, false])
  })

  it('is not valid if the key expired at Unix time 0', () => {
    expect(isValid(anApiKey('one', { expiresAtMs: 0 }))).to.equal(false)
  })

  it('is not valid if the key is revoked, even if the clock is behind the revocation time', () => {
    for (const revokedAtMs of [0, NOW_MS - 1, NOW_MS, NOW_MS + 1]) {
      expect(isValid(anApiKey('one', { revokedAtMs }))).to.equal(false)
      expect(isValid(anApiKey('one', { revokedAtMs, expiresAtMs: NOW_MS + 1000 }))).to.equal(false)
    }
  })

  it('is valid during and after the grace period of the old secret', () => {
    const key = anApiKey('one', { oldSecret: anOldSecret({ expiresAtMs: NOW_MS }) })
    expect([NOW_MS - 1, NOW_MS].map((nowMs) => isValid(key, nowMs))).to.deep.equal([true, true])
  })
})

describe('the old secret of an API key', () => {
  const inGrace = anApiKey('one', { oldSecret: anOldSecret({ expiresAtMs: NOW_MS + 1 }) })

  it('is valid until one millisecond before its grace period ends', () => {
    expect([NOW_MS, NOW_MS + 1].map((nowMs) => isValidSecret(inGrace, OLD_HASH, nowMs))).to.deep.equal([true, false])
    expect([NOW_MS, NOW_MS + 1].map((nowMs) => getValidOldSecret(inGrace, nowMs))).to.deep.equal([inGrace.oldSecret, undefined])
  })

  it('is not valid if the key is revoked or has expired', () => {
    for (const state of [{ revokedAtMs: NOW_MS }, { expiresAtMs: NOW_MS }]) {
      expect(isValidSecret({ ...inGrace, ...state }, OLD_HASH, NOW_MS)).to.equal(false)
      expect(getValidOldSecret({ ...inGrace, ...state }, NOW_MS)).to.equal(undefined)
    }
  })

  it('is not valid if the key has none, or another one', () => {
    for (const key of [anApiKey(), inGrace]) expect(isValidSecret(key, aSecretHash('other'), NOW_MS)).to.equal(false)
  })
})

describe('a use of an API key', () => {
  const isRecorded = (key: ApiKey, lastUsedAtMs?: number, secretHash = HASH) => shouldRecordUse(key, { secretHash, lastUsedAtMs }, NOW_MS)
  const AGES_MS = [3_599_999, 3_600_000, 3_600_001]

  it('is recorded if it is the first, or an hour or more after the last recorded use', () => {
    expect(isRecorded(anApiKey())).to.equal(true)
    expect(AGES_MS.map((agoMs) => isRecorded(anApiKey(), NOW_MS - agoMs))).to.deep.equal([false, true, true])
  })

  it('with the old secret is recorded by the last use of that secret, not of the key', () => {
    const withUse = (overrides: Partial<OldSecret>) =>
      anApiKey('one', { oldSecret: anOldSecret({ expiresAtMs: NOW_MS + 1, ...overrides }) })
    expect(isRecorded(withUse({}), NOW_MS, OLD_HASH)).to.equal(true)
    expect(AGES_MS.map((agoMs) => isRecorded(withUse({ lastUsedAtMs: NOW_MS - agoMs }), NOW_MS, OLD_HASH))).to.deep.equal([
      false,
      true,
      true,
    ])
    expect(isRecorded(withUse({}), NOW_MS)).to.equal(false)
  })

  it('is not recorded if the secret is not valid', () => {
    expect(isRecorded(anApiKey('one', { expiresAtMs: NOW_MS }))).to.equal(false)
    expect(isRecorded(anApiKey('one', { revokedAtMs: NOW_MS }))).to.equal(false)
    expect(isRecorded(anApiKey('one', { oldSecret: anOldSecret({ expiresAtMs: NOW_MS }) }), undefined, OLD_HASH)).to.equal(false)
  })
})
