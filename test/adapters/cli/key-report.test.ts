import { expect } from 'chai'
import { keyLines, keyTable, toKeyReport } from '../../../src/adapters/cli/key-report.js'
import type { StoredApiKey } from '../../../src/core/api-key.js'
import { anApiKey, somePlans } from '../../support/builders.js'

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)
const LIMITS = { minute: 5, day: 50 }

/** A key with everything that a key can have. */
const FULL: StoredApiKey = {
  ...anApiKey('full', { plan: 'enterprise', limits: LIMITS, version: 3 }),
  expiresAtMs: Date.UTC(2027, 0, 31, 12, 30, 45, 678),
  revokedAtMs: Date.UTC(2026, 10, 19, 8),
  lastUsedAtMs: Date.UTC(2026, 10, 18, 7, 59, 59, 999),
}

describe('the report of an API key', () => {
  it('tells everything of it that an operator may know, times as ISO 8601 in UTC', () => {
    expect(report(FULL)).to.deep.equal({
      keyId: 'key_full',
      hint: 'pst_live_…xY9z',
      owner: 'Acme',
      plan: 'enterprise',
      limits: LIMITS,
      ownLimits: true,
      state: 'revoked',
      createdAt: '2026-11-01T08:30:15.123Z',
      expiresAt: '2027-01-31T12:30:45.678Z',
      revokedAt: '2026-11-19T08:00:00.000Z',
      lastUsedAt: '2026-11-18T07:59:59.999Z',
    })
  })

  it('leaves out what was not set, and the hash of the secret always', () => {
    expect(report(anApiKey())).to.have.all.keys('keyId', 'hint', 'owner', 'plan', 'limits', 'ownLimits', 'state', 'createdAt')
  })

  it('tells the limits that hold: its own, or those of its plan', () => {
    expect(report(anApiKey('one', { plan: 'pro' }))).to.deep.include({ limits: { minute: 300, day: 10_000 }, ownLimits: false })
    expect(report(anApiKey('one', { plan: 'pro', limits: LIMITS }))).to.deep.include({ limits: LIMITS, ownLimits: true })
  })

  it('tells of a key without any limits, which a change of the plans file can leave behind, instead of failing', () => {
    const key = report(anApiKey('one', { plan: 'enterprise' }))
    expect(key).to.not.have.property('limits')
    expect(key).to.include({ ownLimits: false })
    expect(keyTable([key], { isFiltered: false })).to.include('no limits')
    expect(keyLines(key)).to.include('enterprise, no limits')
  })

  it('tells the state of now', () => {
    expect(report(anApiKey()).state).to.equal('active')
    expect(report(anApiKey('one', { expiresAtMs: NOW_MS + 1 })).state).to.equal('active')
    expect(report(anApiKey('one', { expiresAtMs: NOW_MS })).state).to.equal('expired')
    expect(report(anApiKey('one', { expiresAtMs: NOW_MS, revokedAtMs: NOW_MS })).state).to.equal('revoked')
  })
})

describe('the lines of an API key', () => {
  it('say one thing each, times to the minute in UTC', () => {
    expect(keyLines(report(FULL)).split('\n')).to.deep.equal([
      'key id     key_full',
      'hint       pst_live_…xY9z',
      'owner      Acme',
      'plan       enterprise, 5 a minute, 50 a day (its own)',
      'state      revoked',
      'created    2026-11-01 08:30Z',
      'expires    2027-01-31 12:30Z',
      'revoked    2026-11-19 08:00Z',
      'last used  2026-11-18 07:59Z',
      '',
    ])
  })

  it('say never for what has not happened and will not', () => {
    expect(keyLines(report(anApiKey())).split('\n').slice(4)).to.deep.equal([
      'state      active',
      'created    2026-11-01 08:30Z',
      'expires    never',
      'last used  never',
      '',
    ])
  })
})

describe('the table of API keys', () => {
  it('has a line for each, in the order given, under a head', () => {
    const reports = [report(FULL), report(anApiKey('two', { owner: 'Ünï 🐶 GmbH' }))]
    expect(keyTable(reports, { isFiltered: false }).split('\n')).to.deep.equal([
      'KEY ID    HINT            OWNER        PLAN        LIMITS                          STATE    CREATED            EXPIRES            LAST USED',
      'key_full  pst_live_…xY9z  Acme         enterprise  5 a minute, 50 a day (its own)  revoked  2026-11-01 08:30Z  2027-01-31 12:30Z  2026-11-18 07:59Z',
      'key_two   pst_live_…xY9z  Ünï 🐶 GmbH  free        60 a minute, 1000 a day         active   2026-11-01 08:30Z  never              never',
      '',
    ])
  })

  it('has neither borders nor colours, which grep and awk would trip over, on a terminal either', () => {
    expect(keyTable([report(FULL)], { isFiltered: false })).to.not.match(/\p{Cc}(?<!\n)|[│┃|+]/u)
  })

  it('tells owners apart that look like each other’s beginning', () => {
    const owners = ['Acme', 'Acme  Ltd', 'Acme Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd']
    const table = keyTable(
      owners.map((owner, index) => report(anApiKey(`${index}`, { owner }))),
      { isFiltered: false },
    )
    for (const owner of owners) expect(table).to.include(`  ${owner}  `)
  })

  it('is a sentence where there is none, and another where none fits', () => {
    expect(keyTable([], { isFiltered: false })).to.equal('There are no API keys yet.\n')
    expect(keyTable([], { isFiltered: true })).to.equal('No API key is like that.\n')
  })
})

function report(key: StoredApiKey) {
  return toKeyReport(key, somePlans(), NOW_MS)
}
