import { expect } from 'chai'
import { formatKey, formatKeys, toKeyReport } from '../../../src/adapters/cli/key-report.js'
import type { StoredApiKey } from '../../../src/core/api-key.js'
import { anApiKey, somePlans } from '../../support/builders.js'

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)
const LIMITS = { minute: 5, day: 50 }

/** A key with every optional field. */
const FULL: StoredApiKey = {
  ...anApiKey('full', { plan: 'enterprise', limits: LIMITS, version: 3 }),
  expiresAtMs: Date.UTC(2027, 0, 31, 12, 30, 45, 678),
  revokedAtMs: Date.UTC(2026, 10, 19, 8),
  lastUsedAtMs: Date.UTC(2026, 10, 18, 7, 59, 59, 999),
}

describe('the report of an API key', () => {
  it('contains every public field, with times as ISO 8601 in UTC', () => {
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

  it('describes a key without any limits, which can result from a changed plans file', () => {
    const key = report(anApiKey('one', { plan: 'enterprise' }))
    expect(key).to.not.have.property('limits')
    expect(key).to.include({ ownLimits: false })
    expect(formatKeys([key], { isFiltered: false })).to.include('no limits')
    expect(formatKey(key)).to.include('enterprise, no limits')
  })
})

describe('an API key formatted for people', () => {
  it('has one line per field, with times to the minute in UTC', () => {
    expect(formatKey(report(FULL)).split('\n')).to.deep.equal([
      'key ID     key_full',
      'hint       pst_live_…xY9z',
      'owner      Acme',
      'plan       enterprise, 5 per minute, 50 per day (custom)',
      'state      revoked',
      'created    2026-11-01 08:30Z',
      'expires    2027-01-31 12:30Z',
      'revoked    2026-11-19 08:00Z',
      'last used  2026-11-18 07:59Z',
      '',
    ])
  })

  it('shows never if the key was never used and never expires', () => {
    expect(formatKey(report(anApiKey())).split('\n').slice(4)).to.deep.equal([
      'state      active',
      'created    2026-11-01 08:30Z',
      'expires    never',
      'last used  never',
      '',
    ])
  })
})

describe('the table of API keys', () => {
  it('has a header and one line per key, in the given order', () => {
    const reports = [report(FULL), report(anApiKey('two', { owner: 'Ünï 🐶 GmbH' }))]
    expect(formatKeys(reports, { isFiltered: false }).split('\n')).to.deep.equal([
      'KEY ID    HINT            OWNER        PLAN        LIMITS                             STATE    CREATED            EXPIRES            LAST USED',
      'key_full  pst_live_…xY9z  Acme         enterprise  5 per minute, 50 per day (custom)  revoked  2026-11-01 08:30Z  2027-01-31 12:30Z  2026-11-18 07:59Z',
      'key_two   pst_live_…xY9z  Ünï 🐶 GmbH  free        60 per minute, 1000 per day        active   2026-11-01 08:30Z  never              never',
      '',
    ])
  })

  it('has neither borders nor colors, so that grep and awk can process it', () => {
    expect(formatKeys([report(FULL)], { isFiltered: false })).to.not.match(/\p{Cc}(?<!\n)|[│┃|+]/u)
  })

  it('does not truncate owners', () => {
    const owners = ['Acme', 'Acme  Ltd', 'Acme Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd Ltd']
    const table = formatKeys(
      owners.map((owner, index) => report(anApiKey(`${index}`, { owner }))),
      { isFiltered: false },
    )
    for (const owner of owners) expect(table).to.include(`  ${owner}  `)
  })

  it('is one sentence if there are no keys, and a different one if no key matches the filters', () => {
    expect(formatKeys([], { isFiltered: false })).to.equal('There are no API keys yet.\n')
    expect(formatKeys([], { isFiltered: true })).to.equal('No API key matches.\n')
  })
})

function report(key: StoredApiKey) {
  return toKeyReport(key, somePlans(), NOW_MS)
}
