import { expect } from 'chai'
import { PendingUsage } from '../../../src/adapters/redis/pending-usage.js'
import type { UsageDelta } from '../../../src/core/quota.js'
import { someQuotaRules } from '../../support/builders.js'

const FREE = someQuotaRules()

function aReport(minute: number, day: number, { strikes = 0, used = 1 }: { strikes?: number; used?: number } = {}): UsageDelta {
  return { window: { minute, day }, strikes, used: { minute: used, day: used } }
}

describe('what a replica decided and Redis does not know yet', () => {
  it('is told once: who takes it out has it alone', () => {
    const pendingUsage = new PendingUsage()
    pendingUsage.addRequests('key_one', FREE, { minute: 100, day: 1 }, 1)
    expect(pendingUsage.take('key_one')).to.deep.equal({ rules: FREE, report: aReport(100, 1) })
    expect(pendingUsage.take('key_one')).to.equal(undefined)
    expect(pendingUsage.keyIds).to.deep.equal([])
  })

  it('is summed for each key by itself', () => {
    const pendingUsage = new PendingUsage()
    for (let count = 0; count < 3; count++) pendingUsage.addRequests('key_one', FREE, { minute: 100, day: 1 }, 1)
    pendingUsage.addRequests('key_one', FREE, { minute: 100, day: 1 }, -1)
    pendingUsage.addRequests('key_two', FREE, { minute: 100, day: 1 }, -1)
    pendingUsage.add('key_one', FREE, aReport(100, 1, { strikes: 4, used: 0 }))
    expect(pendingUsage.keyIds).to.deep.equal(['key_one', 'key_two'])
    expect(pendingUsage.take('key_one')?.report).to.deep.equal(aReport(100, 1, { strikes: 4, used: 2 }))
    expect(pendingUsage.take('key_two')?.report).to.deep.equal(aReport(100, 1, { used: -1 }))
  })

  it('of a minute that is over is dropped for a later one with its strikes, and what it was of the day stays', () => {
    const pendingUsage = new PendingUsage()
    pendingUsage.add('key_one', FREE, aReport(100, 1, { strikes: 5, used: 7 }))
    pendingUsage.add('key_one', FREE, aReport(101, 1, { strikes: 2, used: 3 }))
    expect(pendingUsage.take('key_one')?.report).to.deep.equal({
      window: { minute: 101, day: 1 },
      strikes: 2,
      used: { minute: 3, day: 10 },
    })
  })

  it('that comes late for a minute that is over counts for the day alone', () => {
    const pendingUsage = new PendingUsage()
    pendingUsage.add('key_one', FREE, aReport(101, 1, { strikes: 2, used: 3 }))
    pendingUsage.add('key_one', FREE, aReport(100, 1, { strikes: 5, used: -1 }))
    expect(pendingUsage.take('key_one')?.report).to.deep.equal({ window: { minute: 101, day: 1 }, strikes: 2, used: { minute: 3, day: 2 } })
  })

  it('of a day that is over is dropped, though its minute reaches over midnight', () => {
    const pendingUsage = new PendingUsage()
    pendingUsage.add('key_one', FREE, aReport(100, 1, { used: 7 }))
    pendingUsage.add('key_one', FREE, aReport(100, 2, { used: 3 }))
    expect(pendingUsage.take('key_one')?.report).to.deep.equal({
      window: { minute: 100, day: 2 },
      strikes: 0,
      used: { minute: 10, day: 3 },
    })
  })

  it('is told under the rules that held last', () => {
    const pendingUsage = new PendingUsage()
    const pro = someQuotaRules({ limits: { minute: 300, day: 10_000 } })
    pendingUsage.addRequests('key_one', FREE, { minute: 100, day: 1 }, 1)
    pendingUsage.addRequests('key_one', pro, { minute: 100, day: 1 }, 1)
    expect(pendingUsage.take('key_one')?.rules).to.equal(pro)
  })
})
