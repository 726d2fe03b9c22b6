import { expect } from 'chai'
import { MemoryKeysCommand } from '../../support/memory-keys-command.js'

interface PrintedChange {
  readonly at: string
  readonly action: string
  readonly by: string
}

describe('petstore keys history', () => {
  let keys: MemoryKeysCommand

  beforeEach(() => {
    keys = new MemoryKeysCommand()
  })

  const issue = (...args: string[]) =>
    keys.printJson<{ keyId: string; hint: string; expiresAt: string }>('issue', '--plan', 'free', ...args)
  const list = (...args: string[]) => keys.printJson<PrintedChange[]>('history', ...args)

  it('lists every change of a key with its time, its operator and the old and new values', async () => {
    const { keyId, hint, expiresAt } = await issue('--owner', 'Acme', '--expires', '90d', '--by', 'alice')
    await keys.print('plan', keyId, 'pro', '--minute', '5', '--day', '50', '--by', 'bob')
    await keys.print('plan', keyId, 'business')
    const rotated = await keys.printJson<{ hint: string; oldSecret: { expiresAt: string } }>('rotate', keyId)
    await keys.print('rotate', keyId, '--finish')
    await keys.print('unban', keyId)
    const { revokedAt } = await keys.printJson<{ revokedAt: string }>('revoke', keyId)
    await keys.print('revoke', keyId)

    const oldSecret = { hint, expiresAt: rotated.oldSecret.expiresAt }
    const limits = { minute: 5, day: 50 }
    const changes = await list(keyId)
    expect(changes).to.deep.equal(
      [
        { by: 'alice', action: 'issued', before: {}, after: { plan: 'free', hint, expiresAt } },
        { by: 'bob', action: 'plan-changed', before: { plan: 'free' }, after: { plan: 'pro', limits } },
        { by: 'system-user', action: 'plan-changed', before: { plan: 'pro', limits }, after: { plan: 'business' } },
        { by: 'system-user', action: 'rotated', before: { hint }, after: { hint: rotated.hint, oldSecret } },
        { by: 'system-user', action: 'rotation-finished', before: { oldSecret }, after: {} },
        { by: 'system-user', action: 'unbanned', before: { isBanned: false }, after: { isBanned: false } },
        { by: 'system-user', action: 'revoked', before: {}, after: { revokedAt } },
      ].map((change, index) => ({ at: changes[index]?.at, keyId, owner: 'Acme', ...change })),
    )
    for (const { at } of changes) expect(Date.parse(at)).to.be.within(Date.now() - 30_000, Date.now())
  })

  it('prints one line per change to people, oldest first', async () => {
    const { keyId, hint } = await issue('--owner', 'Acme', '--minute', '5', '--day', '50', '--by', 'alice')
    await keys.print('plan', keyId, 'pro')
    await keys.print('rotate', keyId, '--grace', '0')
    const [head, ...lines] = (await keys.print('history', keyId)).trimEnd().split('\n')
    expect(head).to.match(/^TIME +KEY ID +OWNER +BY +CHANGE +BEFORE +AFTER$/)
    expect(lines[0]).to.match(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}key_\w{16} {2}Acme +alice +issued +- +free, 5 per minute, 50 per day, secret pst_live_…\w{4}$/,
    )
    expect(lines[1]).to.match(/ system-user +plan-changed +free, 5 per minute, 50 per day +pro$/)
    expect(lines[2])
      .to.include(`rotated       secret ${hint}`)
      .and.match(/secret pst_live_…\w{4}$/)
    expect(lines).to.have.lengthOf(3)
  })

  it('lists the changes of an owner, of a time range and of all keys, and the latest ones with --limit', async () => {
    const first = await issue('--owner', 'Acme')
    await issue('--owner', 'Zoo')
    await keys.print('revoke', first.keyId)
    const actions = async (...args: string[]) => (await list(...args)).map(({ action }) => action)
    expect(await actions()).to.have.members(['issued', 'issued', 'revoked'])
    expect(await actions('--owner', 'Acme')).to.deep.equal(['issued', 'revoked'])
    expect(await actions('--since', '30m')).to.have.lengthOf(3)
    expect(await actions('--until', '30m')).to.deep.equal([])
    expect(await actions('--since', '2020-01-01', '--until', '2020-01-02T00:00Z')).to.deep.equal([])
    expect(await actions('--owner', 'Acme', '--limit', '1')).to.deep.equal(['revoked'])
    expect(await keys.print('history', '--owner', 'Nobody')).to.equal('No change matches.\n')
  })
})
