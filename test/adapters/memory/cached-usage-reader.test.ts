import { expect } from 'chai'
import { CachedUsageReader } from '../../../src/adapters/memory/cached-usage-reader.js'
import { MemoryQuotaStore } from '../../../src/adapters/memory/memory-quota-store.js'
import type { KeyVersion, QuotaRules } from '../../../src/core/quota.js'
import { rejection } from '../../contracts/rejection.js'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import { MovableClock } from '../../support/movable-clock.js'
import { takeOne } from '../../support/take-one.js'

const FREE = someQuotaRules()

describe('the cached usage of a key', () => {
  let clock: MovableClock
  let store: MemoryQuotaStore
  let cache: CachedUsageReader
  let reads: KeyVersion[]
  let failure: Error | undefined

  beforeEach(() => {
    clock = new MovableClock()
    store = new MemoryQuotaStore(clock)
    reads = []
    failure = undefined
    const readUsage: MemoryQuotaStore['readUsage'] = async (keyId, rules, keyVersion) => {
      reads.push(keyVersion)
      if (failure) throw failure
      return store.readUsage(keyId, rules, keyVersion)
    }
    cache = new CachedUsageReader({ readUsage }, clock)
  })

  const read = async (keyId = 'key_one', rules: QuotaRules = FREE) => {
    const usage = await cache.readUsage(keyId, rules, { version: 1 })
    if ('kind' in usage) throw new Error('The record is stale')
    return usage
  }
  const readMinuteUsed = async () => (await read()).windows.minute.used

  it('is at most one second old', async () => {
    expect(await readMinuteUsed()).to.equal(0)
    await takeOne(store, 'key_one', FREE)
    clock.advanceMs(999)
    expect(await readMinuteUsed()).to.equal(0)
    expect(reads).to.have.lengthOf(1)
    clock.advanceMs(1)
    expect(await readMinuteUsed()).to.equal(1)
    expect(reads).to.have.lengthOf(2)
  })

  it('has the current time, so that the seconds until a reset are right', async () => {
    const { nowMs } = (await read()).quota
    clock.advanceMs(999)
    expect((await read()).quota.nowMs).to.equal(nowMs + 999)
    expect(reads).to.have.lengthOf(1)
  })

  it('is read once for 100 requests at the same time', async () => {
    await Promise.all(Array.from({ length: 100 }, () => read()))
    expect(reads).to.have.lengthOf(1)
  })

  it('is separate for each key', async () => {
    await takeOne(store, 'key_one', FREE)
    expect((await read('key_one')).windows.minute.used).to.equal(1)
    expect((await read('key_two')).windows.minute.used).to.equal(0)
  })

  it('is read again when the minute ends, and when the day ends', async () => {
    for (const name of ['minute', 'day'] as const) {
      await takeOne(store, 'key_one', FREE)
      const { resetSeconds } = (await read()).windows[name]
      clock.moveTo(resetSeconds * 1000 - 100)
      expect((await read()).windows[name].used).to.be.above(0)
      clock.advanceMs(100)
      const { windows } = await read()
      expect(windows[name].used).to.equal(0)
      expect(windows[name].resetSeconds * 1000).to.be.above(clock.nowMs())
    }
  })

  it('is read again when the ban ends', async () => {
    const rules = someQuotaRules({ limits: { minute: 1 }, ban: someBanRules({ minStrikes: 1, graceMs: 0, firstMs: 300 }) })
    for (let count = 0; count < 3; count++) {
      clock.advanceMs(1)
      await takeOne(store, 'key_one', rules)
    }
    expect(await read('key_one', rules)).to.have.property('bannedUntilMs')
    clock.advanceMs(300)
    expect(await read('key_one', rules)).not.to.have.property('bannedUntilMs')
  })

  it('is separate for each version of the record, so that a later record applies at once', async () => {
    await read()
    await store.announce('key_one', 2)
    expect(await cache.readUsage('key_one', FREE, { version: 2 })).to.have.property('windows')
    expect(reads).to.deep.equal([{ version: 1 }, { version: 2 }])
  })

  it('is returned for a record that was read again, although an earlier read found that record stale', async () => {
    await store.announce('key_one', 2)
    expect(await cache.readUsage('key_one', FREE, { version: 1 })).to.deep.equal({ kind: 'stale', knownVersion: 2 })
    expect(await cache.readUsage('key_one', FREE, { version: 1, readSince: 2 })).to.have.property('windows')
    expect(await cache.readUsage('key_one', FREE, { version: 1 })).to.have.property('windows')
    expect(reads).to.have.lengthOf(2)
  })

  it('is not cached if it could not be read', async () => {
    failure = new Error('broken')
    expect(await rejection(read())).to.equal(failure)
    failure = undefined
    expect(await readMinuteUsed()).to.equal(0)
  })
})
