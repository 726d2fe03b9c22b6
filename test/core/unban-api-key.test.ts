import { expect } from 'chai'
import { MemoryApiKeyHistory } from '../../src/adapters/memory/memory-api-key-history.js'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { ApiKeyNotFound, StoreUnavailable } from '../../src/core/errors.js'
import { makeListApiKeyHistory } from '../../src/core/use-cases/list-api-key-history.js'
import { makeShowApiKey } from '../../src/core/use-cases/show-api-key.js'
import { makeUnbanApiKey } from '../../src/core/use-cases/unban-api-key.js'
import { rejection } from '../contracts/rejection.js'
import { anApiKey, anIssue } from '../support/builders.js'
import { MovableClock } from '../support/movable-clock.js'

// test/core/key-changes.test.ts tests what it does to the ban.
describe('lifting the ban of a key', () => {
  it('is recorded with the operator and whether the key was banned', async () => {
    const { unban, clock, list, quotaControl } = await anUnban()
    quotaControl.unban = async () => 'lifted'
    await unban('key_one', 'alice')
    const [, change] = await list({})
    const values = { before: { isBanned: true }, after: { isBanned: false } }
    expect(change).to.deep.equal({ keyId: 'key_one', owner: 'Acme', atMs: clock.nowMs(), by: 'alice', action: 'unbanned', ...values })
  })

  it('is not recorded if the ban could not be lifted', async () => {
    const { unban, list, quotaControl } = await anUnban()
    quotaControl.unban = () => Promise.reject(new StoreUnavailable('Redis is unavailable'))
    expect(await rejection(unban('key_one', 'alice'))).to.be.instanceOf(StoreUnavailable)
    expect(await list({})).to.have.lengthOf(1)
  })

  it('is recorded also if the key is not banned, because an earlier attempt may have lifted the ban without recording it', async () => {
    const { unban, list } = await anUnban()
    await unban('key_one', 'alice')
    const [, change] = await list({})
    expect(change).to.deep.include({ action: 'unbanned', before: { isBanned: false } })
  })

  it('fails with an explanation if it could not be recorded', async () => {
    const { unban, history } = await anUnban()
    history.add = () => Promise.reject(new StoreUnavailable('MongoDB is unavailable'))
    expect(await rejection(unban('key_one', 'alice')))
      .to.be.instanceOf(StoreUnavailable)
      .with.property('message', 'MongoDB is unavailable; the key is unbanned, but its history may not show it: repeat the command')
  })
})

describe('listing the history of API keys', () => {
  it('throws ApiKeyNotFound for a key ID that does not exist, and lists nothing for an owner without keys', async () => {
    const { list } = await anUnban()
    expect(await rejection(list({ keyId: 'key_two' }))).to.be.instanceOf(ApiKeyNotFound)
    expect(await list({ owner: 'Nobody' })).to.deep.equal([])
  })
})

async function anUnban() {
  const clock = new MovableClock()
  const history = new MemoryApiKeyHistory()
  const apiKeyStore = new MemoryApiKeyStore(clock, history)
  await apiKeyStore.insert(anApiKey(), anIssue())
  const quotaControl = new MemoryQuotaStore(clock)
  const ports = { showApiKey: makeShowApiKey({ apiKeyStore }), quotaControl, apiKeyHistory: history, clock }
  return { clock, history, quotaControl, unban: makeUnbanApiKey(ports), list: makeListApiKeyHistory(ports) }
}
