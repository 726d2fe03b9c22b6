import { expect } from 'chai'
import { InvalidArgumentError } from 'commander'
import { parseCount, parseExpiry, parseKeyId, parseLimit, parseName, toLimits } from '../../../src/adapters/cli/options.js'

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)

const GARBAGE = [
  '',
  ' ',
  '-1',
  '+1',
  '1.0',
  '1.5',
  '1,5',
  '1e3',
  '0x10',
  '1_000',
  ' 1',
  '1 ',
  '1\n',
  '٣',
  'NaN',
  'Infinity',
  'all',
  '9'.repeat(30),
]

describe('the command line', () => {
  it('accepts only whole numbers from 1 to 2^31 − 1, the maximum of the int32 quota headers, as a limit', () => {
    for (const limit of [1, 60, 2_147_483_647]) expect(parseLimit(`${limit}`)).to.equal(limit)
    for (const text of [...GARBAGE, '0', '2147483648'])
      expect(() => parseLimit(text), text).to.throw(InvalidArgumentError, 'a whole number from 1 to 2147483647')
  })

  it('accepts both limits of a key or neither', () => {
    expect(toLimits({ minute: 1, day: 2 })).to.deep.equal({ limits: { minute: 1, day: 2 } })
    expect(toLimits({})).to.deep.equal({})
    for (const one of [{ minute: 1 }, { day: 1 }]) expect(() => toLimits(one)).to.throw(InvalidArgumentError, /--minute.*--day/)
  })

  it('accepts only whole numbers from 0 to 100,000,000 as a number of rows', () => {
    for (const count of [0, 1, 1_000_000, 100_000_000]) expect(parseCount(`${count}`)).to.equal(count)
    for (const text of [...GARBAGE, '100000001'])
      expect(() => parseCount(text), text).to.throw(InvalidArgumentError, 'a whole number from 0 to 100000000')
  })

  it('accepts 1 to 200 characters in any script as an owner, and removes surrounding spaces', () => {
    for (const owner of ['A', 'Acme', 'Ünï & Söhne "GmbH"', '株式会社', '👩‍🚀 Space', 'x'.repeat(200), '🐶'.repeat(200)]) {
      expect(parseName(owner)).to.equal(owner)
      expect(parseName(`  ${owner} `)).to.equal(owner)
    }
    for (const owner of ['', ' ', '\t\n', 'x'.repeat(201), '🐶'.repeat(201)])
      expect(() => parseName(owner), JSON.stringify(owner)).to.throw(InvalidArgumentError, '1 to 200 characters')
  })

  it('rejects an owner with terminal control characters', () => {
    for (const control of ['\u0000', '\u0007', '\b', '\t', '\n', '\r', '\u001B[31m', '\u007F', '\u009B31m', '\uD800', '\u2028', '\u202E'])
      expect(() => parseName(`Ac${control}me`), JSON.stringify(control)).to.throw(InvalidArgumentError, 'without control characters')
  })

  it('accepts any word as a key ID, and repeats neither a secret nor any other input in the error', () => {
    for (const id of ['key_iVZ3MMmzqGK7Hqul', 'key_nope', 'nope', 'a-b']) expect(parseKeyId(id)).to.equal(id)
    for (const secret of ['pst_live_bVi0JTUPJj8DebGxrInogr1d3uH0ci32MvKE', 'pst_live_short'])
      expect(() => parseKeyId(secret)).to.throw(
        InvalidArgumentError,
        /^It must be a key ID \(key_…\) as printed by list, not the secret\.$/,
      )
    for (const text of ['', ' ', 'key_one ', 'key one', 'key_\u001B[31m', '$ne', '{}', 'é', 'x'.repeat(101)])
      expect(() => parseKeyId(text)).to.throw(InvalidArgumentError, /^It must be a key ID \(key_…\) as printed by list\.$/)
  })

  describe('for an expiry', () => {
    const DAY_MS = 86_400_000

    it('accepts a duration from now', () => {
      for (const [text, ms] of [
        ['1m', 60_000],
        ['30m', 30 * 60_000],
        ['12h', DAY_MS / 2],
        ['1d', DAY_MS],
        ['99999d', 99_999 * DAY_MS],
      ] as const)
        expect(parseExpiry(text, NOW_MS), text).to.equal(NOW_MS + ms)
    })

    it('accepts a date, which means its start in UTC, or a time with a time zone', () => {
      for (const [text, iso] of [
        ['2026-11-21', '2026-11-21T00:00:00.000Z'],
        ['2028-02-29', '2028-02-29T00:00:00.000Z'],
        ['9999-12-31', '9999-12-31T00:00:00.000Z'],
        ['2027-01-31T12:00Z', '2027-01-31T12:00:00.000Z'],
        ['2027-01-31T12:00:15Z', '2027-01-31T12:00:15.000Z'],
        ['2027-01-31T12:00:15.123Z', '2027-01-31T12:00:15.123Z'],
        ['2027-01-01T00:30+05:30', '2026-12-31T19:00:00.000Z'],
        ['2027-12-31T23:30-05:00', '2028-01-01T04:30:00.000Z'],
        ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
      ] as const)
        expect(new Date(parseExpiry(text, NOW_MS)).toISOString(), text).to.equal(iso)
    })

    it('rejects a time in the past and the current time', () => {
      for (const text of ['0m', '0d', '00000h', '2026-11-20', '2020-01-01', '0000-01-01', '0001-01-01', '2026-11-20T12:00:30Z'])
        expect(() => parseExpiry(text, NOW_MS), text).to.throw(InvalidArgumentError, 'It must be in the future.')
    })

    it('rejects a time after the year 9999', () => {
      for (const text of ['9999-12-31T23:59-00:01', '9999-12-31T23:59-14:00'])
        expect(() => parseExpiry(text, NOW_MS), text).to.throw(InvalidArgumentError, 'It must be before the year 10000.')
    })

    it('rejects a date or time that does not exist, a time without a time zone, and any other text', () => {
      const wrongDates = ['2027-02-29', '2027-02-31', '2027-04-31', '2027-13-01', '2027-00-10', '2027-01-00', '2027-02-31T12:00Z']
      const wrongTimes = ['2027-01-01T25:00Z', '2027-01-01T12:60Z', '2027-01-01T12:00:61Z', '2027-01-01T12:00+99:99']
      const withoutZone = ['2027-01-31T12:00', '2027-01-31 12:00', '2027-01-31T12:00:00.000']
      const garbage = ['', ' ', 'tomorrow', 'never', '90', 'd', '90 d', '90D', '-1d', '1.5d', '1w', '1y', '100000d', '1e3d', '٣d']
      const otherDates = ['2027', '2027-01', '31.01.2027', '01/31/2027', '2027-1-31', '+010000-01-01', '1800000000000', '2027-01-31Z']
      for (const text of [...wrongDates, ...wrongTimes, ...withoutZone, ...garbage, ...otherDates])
        expect(() => parseExpiry(text, NOW_MS), JSON.stringify(text)).to.throw(
          InvalidArgumentError,
          'It must be a duration such as 90d, 12h or 30m, a date such as 2027-01-31, or a time such as 2027-01-31T12:00Z.',
        )
    })
  })
})
