import { expect } from 'chai'
import { MemoryQuotaStore } from '../../../src/adapters/memory/memory-quota-store.js'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import { MovableClock } from '../../support/movable-clock.js'
import { takeOne } from '../../support/take-one.js'

const DAY_MS = 86_400_000

describe('the memory quota store', () => {
  it('holds one state per key', async () => {
    const quotas = new MemoryQuotaStore(new MovableClock())
    for (let count = 0; count < 300; count++) await takeOne(quotas, `key_${count % 3}`, someQuotaRules())
    expect(quotas.size).to.equal(3)
  })

  it('has dropped the keys of a day after about as many requests of the next day', async () => {
    const clock = new MovableClock()
    const quotas = new MemoryQuotaStore(clock)
    for (let index = 0; index < 10_000; index++) await takeOne(quotas, `key_${index}`, someQuotaRules())
    expect(quotas.size).to.equal(10_000)
    clock.advanceMs(DAY_MS)
    for (let count = 0; count < 11_000; count++) await takeOne(quotas, 'key_next_day', someQuotaRules())
    expect(quotas.size).to.equal(1)
  })

  it('keeps every key of the day', async () => {
    const clock = new MovableClock()
    const quotas = new MemoryQuotaStore(clock)
    await takeOne(quotas, 'key_one', someQuotaRules())
    clock.advanceMs(6 * 60 * 60 * 1000)
    for (let index = 0; index < 10_000; index++) await takeOne(quotas, `key_${index}`, someQuotaRules())
    expect((await takeOne(quotas, 'key_one', someQuotaRules())).quota.day.remaining).to.equal(998)
  })

  it('keeps a banned key beyond its day, until the ban is forgotten', async () => {
    const clock = new MovableClock()
    const quotas = new MemoryQuotaStore(clock)
    const rules = someQuotaRules({
      limits: { minute: 1 },
      ban: someBanRules({ graceMs: 0, minStrikes: 1, firstMs: DAY_MS, longestMs: DAY_MS }),
    })
    await takeOne(quotas, 'key_banned', rules)
    await takeOne(quotas, 'key_banned', rules)
    clock.advanceMs(1)
    expect((await takeOne(quotas, 'key_banned', rules)).kind).to.equal('banned')

    clock.advanceMs(2 * DAY_MS - 1)
    for (let count = 0; count < 5; count++) await takeOne(quotas, 'key_other', rules)
    expect(quotas.size).to.equal(2)
    clock.advanceMs(1)
    for (let count = 0; count < 5; count++) await takeOne(quotas, 'key_other', rules)
    expect(quotas.size).to.equal(1)
  })
})
