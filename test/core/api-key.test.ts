import { expect } from 'chai'
import { isUsable, shouldRecordUse } from '../../src/core/api-key.js'
import { anApiKey } from '../support/builders.js'

const NOW_MS = Date.UTC(2026, 10, 20, 12)

describe('an API key', () => {
  it('that neither expires nor is revoked is usable at any time', () => {
    for (const nowMs of [0, NOW_MS, Number.MAX_SAFE_INTEGER]) expect(isUsable(anApiKey(), nowMs)).to.equal(true)
  })

  it('is usable until one millisecond before it expires', () => {
    const key = anApiKey('one', { expiresAtMs: NOW_MS })
    expect(isUsable(key, NOW_MS - 1)).to.equal(true)
    expect(isUsable(key, NOW_MS)).to.equal(false)
    expect(isUsable(key, NOW_MS + 1)).to.equal(false)
  })

  it('that expired at Unix time 0 is not usable', () => {
    expect(isUsable(anApiKey('one', { expiresAtMs: 0 }), NOW_MS)).to.equal(false)
  })

  it('that is revoked is not usable, even if the clock is behind the revocation time', () => {
    for (const revokedAtMs of [0, NOW_MS - 1, NOW_MS, NOW_MS + 1]) {
      expect(isUsable(anApiKey('one', { revokedAtMs }), NOW_MS)).to.equal(false)
      expect(isUsable(anApiKey('one', { revokedAtMs, expiresAtMs: NOW_MS + 1000 }), NOW_MS)).to.equal(false)
    }
  })
})

describe('a use of an API key', () => {
  it('is recorded if it is the first, or an hour or more after the last recorded use', () => {
    const isRecorded = (lastUsedAtMs?: number) => shouldRecordUse(anApiKey(), lastUsedAtMs, NOW_MS)
    expect(isRecorded()).to.equal(true)
    expect([3_599_999, 3_600_000, 3_600_001].map((agoMs) => isRecorded(NOW_MS - agoMs))).to.deep.equal([false, true, true])
  })

  it('is not recorded if the key is not usable', () => {
    expect(shouldRecordUse(anApiKey('one', { expiresAtMs: NOW_MS }), undefined, NOW_MS)).to.equal(false)
    expect(shouldRecordUse(anApiKey('one', { revokedAtMs: NOW_MS }), undefined, NOW_MS)).to.equal(false)
  })
})
