import { expect } from 'chai'
import { ApiKeyRevoked, RotationInProgress, StoreUnavailable } from '../../../src/core/errors.js'
import { rejection } from '../../contracts/rejection.js'
import { anApiKey, anOldSecret } from '../../support/builders.js'
import { MemoryKeysCommand } from '../../support/memory-keys-command.js'

const SECRET = /pst_live_[0-9A-Za-z]{36}/

interface PrintedKey {
  readonly key?: string
  readonly hint: string
  readonly oldSecret?: { readonly hint: string; readonly expiresAt: string; readonly lastUsedAt?: string }
}

describe('petstore keys rotate', () => {
  let keys: MemoryKeysCommand

  beforeEach(async () => {
    keys = new MemoryKeysCommand()
    await keys.store(anApiKey())
  })

  it('prints the new secret once, as issue does, and the end of the old one', async () => {
    const text = await keys.print('rotate', 'key_one')
    expect(text).to.match(/^The API key's secret. It is shown only once and is not stored:\n\n {2}pst_live_\w{36}\n\nkey ID +key_one\n/)
    expect(text).to.match(/^old secret +pst_live_…xY9z, valid until \d{4}-\d\d-\d\d \d\d:\d\dZ, not used since the rotation$/m)
    expect(text.match(new RegExp(SECRET, 'g'))).to.have.lengthOf(1)
    expect(text).to.match(/\nThe change takes effect on the next request.\n$/)
    expect(await keys.print('show', 'key_one')).to.not.match(SECRET)
  })

  for (const [args, graceMs] of [
    [[], 86_400_000],
    [['--grace', '30m'], 1_800_000],
    [['--grace', '7d'], 604_800_000],
  ] as const) {
    it(`keeps the old secret for the grace period: ${args.join(' ') || 'by default'}`, async () => {
      const nowMs = Date.now()
      const { key, oldSecret, ...printed } = await keys.printJson<PrintedKey>('rotate', 'key_one', ...args)
      expect(key).to.match(SECRET)
      expect(printed).to.deep.include({ hint: `pst_live_…${key?.slice(-4)}`, takesEffect: 'at once', state: 'active' })
      expect(oldSecret).to.include({ hint: 'pst_live_…xY9z' })
      expect(Date.parse(oldSecret?.expiresAt ?? '') - nowMs).to.be.within(graceMs, graceMs + 30_000)
    })
  }

  it('with --grace 0 leaves no old secret, and can be repeated at once', async () => {
    for (let count = 0; count < 2; count++)
      expect(await keys.printJson('rotate', 'key_one', '--grace', '0')).to.not.have.property('oldSecret')
    expect(keys.audited[0]).to.include({ oldHint: 'pst_live_…xY9z' }).and.not.have.property('oldSecretExpiresAt')
  })

  it('--finish removes the old secret, prints no secret, and changes nothing if it is repeated', async () => {
    await keys.print('rotate', 'key_one')
    const finished = await keys.printJson('rotate', 'key_one', '--finish')
    expect(finished).to.include({ keyId: 'key_one', takesEffect: 'at once' }).and.not.have.any.keys('key', 'oldSecret')
    expect(await keys.printJson('rotate', 'key_one', '--finish')).to.deep.equal(finished)
    expect(await keys.apiKeyHistory.list({})).to.have.lengthOf(3)
  })

  it('is rejected with the reason during the grace period of an earlier rotation, and for a revoked key', async () => {
    await keys.print('rotate', 'key_one')
    const error = await rejection(keys.run('rotate', 'key_one'))
    expect(error).to.be.instanceOf(RotationInProgress)
    expect((error as Error).message).to.match(
      /^API key key_one was rotated before, and its old secret is valid until \d{4}-\d\d-\d\d \d\d:\d\dZ: wait, or use --finish to invalidate it now$/,
    )
    await keys.print('revoke', 'key_one')
    expect(await rejection(keys.run('rotate', 'key_one'))).to.be.instanceOf(ApiKeyRevoked)
  })

  it('prints the secret and fails if it is unknown whether the key was rotated', async () => {
    Object.assign(keys.apiKeyStore, { update: () => Promise.reject(new StoreUnavailable('MongoDB is unavailable')) })
    const error = await rejection(keys.run('rotate', 'key_one'))
    expect(error).to.be.instanceOf(StoreUnavailable)
    const [secret = ''] = SECRET.exec(keys.printed) ?? []
    expect(keys.printed).to.include("The API key's new secret, if the key was rotated.")
    expect((error as Error).message).to.equal(
      `MongoDB is unavailable; the key may have been rotated anyway: it was if petstore keys show prints the hint pst_live_…${secret.slice(-4)}`,
    )
    expect(keys.audited).to.deep.equal([])
  })

  it('is shown with the last use of the old secret until its grace period ends or the key is revoked', async () => {
    const lastUsedAtMs = Date.now() - 5_000
    await keys.store(
      anApiKey('two', { oldSecret: anOldSecret({ lastUsedAtMs }) }),
      anApiKey('three', { oldSecret: anOldSecret({ expiresAtMs: 1 }) }),
    )
    const { oldSecret } = await keys.printJson<PrintedKey>('show', 'key_two')
    expect(oldSecret).to.deep.equal({
      hint: 'pst_live_…oLd1',
      expiresAt: '2030-01-01T00:00:00.000Z',
      lastUsedAt: new Date(lastUsedAtMs).toISOString(),
    })
    expect(await keys.print('show', 'key_two')).to.match(
      /^old secret +pst_live_…oLd1, valid until 2030-01-01 00:00Z, last used \S+ \d\d:\d\dZ$/m,
    )
    expect(await keys.printJson('show', 'key_three')).to.not.have.property('oldSecret')
    expect(await keys.printJson('revoke', 'key_two')).to.not.have.property('oldSecret')
  })
})
