import { expect } from 'chai'
import { formatUsage, toUsageReport } from '../../../src/adapters/cli/usage-report.js'
import { decide, toUsage } from '../../../src/core/quota.js'
import { anApiKey, someQuotaRules } from '../../support/builders.js'

const RULES = someQuotaRules()
const NOON = { nowMs: Date.UTC(2026, 10, 22, 12), phaseSeconds: 0 }

describe('the usage report of a banned key', () => {
  const { state } = decide(undefined, RULES, NOON)
  const banned = { ...state, bannedUntilMs: NOON.nowMs + 300_000, banLevel: 2 }
  const report = toUsageReport(anApiKey('one'), toUsage(banned, RULES, NOON))

  it('has the fields of GET /v1/usage: the actual ends of the windows, and the end of the ban', () => {
    expect(report).to.deep.equal({
      keyId: 'key_one',
      plan: 'free',
      minute: { limit: 60, used: 1, remaining: 0, resetsAt: '2026-11-22T12:01:00.000Z' },
      day: { limit: 1000, used: 1, remaining: 0, resetsAt: '2026-11-23T00:00:00.000Z' },
      ban: { endsAt: '2026-11-22T12:05:00.000Z' },
      strikes: 0,
      banLevel: 2,
    })
  })

  it('prints the end of the ban, and each window with its own end', () => {
    expect(formatUsage(report))
      .to.match(/^key_one, free: banned until 2026-11-22T12:05:00\.000Z, consecutive bans: 2\n/)
      .and.match(/^minute +1 +0 +60 +2026-11-22T12:01:00\.000Z$/m)
      .and.match(/^day +1 +0 +1000 +2026-11-23T00:00:00\.000Z$/m)
  })
})
