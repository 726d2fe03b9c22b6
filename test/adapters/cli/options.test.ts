import { expect } from 'chai'
import { InvalidArgumentError } from 'commander'
import { parseCount, dayOption, parseExpiry, parseKeyId, minuteOption, parseOwner, ownLimits } from '../../../src/adapters/cli/options.js'

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)

const NO_WHOLE_NUMBERS = [
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
]

describe('the command line takes', () => {
  describe('as a limit', () => {
    for (const option of [minuteOption(), dayOption()]) {
      const parseLimit = (text: string) => option.parseArg?.(text, undefined) as unknown

      it(`whole numbers from 1 to 2^31 - 1, the maximum of the int32 quota headers: ${option.long}`, () => {
        for (const number of [1, 60, 2_147_483_647]) expect(parseLimit(`${number}`)).to.equal(number)
      })

      it(`nothing else: ${option.long}`, () => {
        for (const text of [...NO_WHOLE_NUMBERS, '0', '2147483648', '9'.repeat(30)]) {
          expect(() => parseLimit(text), JSON.stringify(text)).to.throw(InvalidArgumentError, 'a whole number from 1 to 2147483647')
        }
      })
    }

    it('those of the minute and of the day together, or none', () => {
      expect(ownLimits({ minute: 1, day: 2 })).to.deep.equal({ limits: { minute: 1, day: 2 } })
      expect(ownLimits({})).to.deep.equal({})
    })

    it('not one of them without the other', () => {
      for (const one of [{ minute: 1 }, { day: 1 }]) {
        expect(() => ownLimits(one)).to.throw(InvalidArgumentError, /--minute.*--day/)
      }
    })
  })

  describe('as a number of rows', () => {
    it('whole numbers from 0 to a hundred million', () => {
      for (const number of [0, 1, 1_000_000, 100_000_000]) expect(parseCount(`${number}`)).to.equal(number)
    })

    it('nothing else', () => {
      for (const text of [...NO_WHOLE_NUMBERS, '100000001', '9'.repeat(30)]) {
        expect(() => parseCount(text), JSON.stringify(text)).to.throw(InvalidArgumentError, 'a whole number from 0 to 100000000')
      }
    })
  })

  describe('as an owner', () => {
    it('any name of 1 to 200 characters, in whatever script, without the spaces around it', () => {
      for (const owner of ['A', 'Acme', 'Ünï & Söhne "GmbH"', '株式会社', '👩‍🚀 Space', 'x'.repeat(200), '🐶'.repeat(200)]) {
        expect(parseOwner(owner)).to.equal(owner)
        expect(parseOwner(`  ${owner} `)).to.equal(owner)
      }
    })

    it('no empty name and none longer', () => {
      for (const owner of ['', ' ', '\t\n', 'x'.repeat(201), '🐶'.repeat(201)]) {
        expect(() => parseOwner(owner), JSON.stringify(owner)).to.throw(InvalidArgumentError, '1 to 200 characters')
      }
    })

    it('no control characters, which would steer the terminal of whoever lists the keys', () => {
      for (const control of ['\u0000', '\u0007', '\b', '\t', '\n', '\r', '\u001B[31m', '\u007F', '\u009B31m', '\uD800']) {
        expect(() => parseOwner(`Ac${control}me`), JSON.stringify(control)).to.throw(InvalidArgumentError, 'without control characters')
      }
    })
  })

  describe('as a key id', () => {
    it('any word, there or not', () => {
      for (const id of ['key_iVZ3MMmzqGK7Hqul', 'key_nope', 'nope', 'a-b']) expect(parseKeyId(id)).to.equal(id)
    })

    it('no secret, which it does not repeat', () => {
      for (const secret of ['pst_live_bVi0JTUPJj8DebGxrInogr1d3uH0ci32MvKE', 'pst_live_short']) {
        expect(() => parseKeyId(secret))
          .to.throw(InvalidArgumentError, /not its secret/)
          .with.property('message')
          .that.does.not.include(secret.slice(9))
      }
    })

    it('nothing that is no word, and repeats none of it', () => {
      for (const text of ['', ' ', 'key_one ', 'key one', 'key_\u001B[31m', '$ne', '{}', 'é', 'x'.repeat(101)]) {
        expect(() => parseKeyId(text), JSON.stringify(text)).to.throw(
          InvalidArgumentError,
          /^It must be the id of a key, key_…, as list shows it\.$/,
        )
      }
    })
  })

  describe('as an expiry', () => {
    const DAY_MS = 86_400_000

    for (const [text, ms] of [
      ['1m', 60_000],
      ['30m', 30 * 60_000],
      ['12h', DAY_MS / 2],
      ['1d', DAY_MS],
      ['90d', 90 * DAY_MS],
      ['99999d', 99_999 * DAY_MS],
    ] satisfies [string, number][]) {
      it(`a span from now: ${text}`, () => {
        expect(parseExpiry(text, NOW_MS)).to.equal(NOW_MS + ms)
      })
    }

    for (const [text, iso] of [
      ['2026-11-21', '2026-11-21T00:00:00.000Z'],
      ['2028-02-29', '2028-02-29T00:00:00.000Z'],
      ['9999-12-31', '9999-12-31T00:00:00.000Z'],
    ] satisfies [string, string][]) {
      it(`a day, which it does not live to see, in UTC: ${text}`, () => {
        expect(new Date(parseExpiry(text, NOW_MS)).toISOString()).to.equal(iso)
      })
    }

    for (const [text, iso] of [
      ['2027-01-31T12:00Z', '2027-01-31T12:00:00.000Z'],
      ['2027-01-31T12:00:15Z', '2027-01-31T12:00:15.000Z'],
      ['2027-01-31T12:00:15.123Z', '2027-01-31T12:00:15.123Z'],
      ['2027-01-31T12:00+02:00', '2027-01-31T10:00:00.000Z'],
      ['2027-01-01T00:30+05:30', '2026-12-31T19:00:00.000Z'],
      ['2027-12-31T23:30-05:00', '2028-01-01T04:30:00.000Z'],
      ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ] satisfies [string, string][]) {
      it(`an instant with its zone: ${text}`, () => {
        expect(new Date(parseExpiry(text, NOW_MS)).toISOString()).to.equal(iso)
      })
    }

    it('no time that is gone, nor now', () => {
      for (const text of ['0m', '0d', '00000h', '2026-11-20', '2020-01-01', '0000-01-01', '0001-01-01', '2026-11-20T12:00:30Z']) {
        expect(() => parseExpiry(text, NOW_MS), text).to.throw(InvalidArgumentError, 'It must lie in the future.')
      }
    })

    it('no time beyond the year 9999, for which tables and JSON have no place', () => {
      for (const text of ['9999-12-31T23:59-00:01', '9999-12-31T23:59-14:00']) {
        expect(() => parseExpiry(text, NOW_MS), text).to.throw(InvalidArgumentError, 'It must lie before the year 10000.')
      }
    })

    it('no day that the calendar does not have', () => {
      for (const text of ['2027-02-29', '2027-02-31', '2027-04-31', '2027-13-01', '2027-00-10', '2027-01-00', '2027-02-31T12:00Z']) {
        expect(() => parseExpiry(text, NOW_MS), text).to.throw(InvalidArgumentError, 'a span such as 90d')
      }
    })

    it('no time that a clock does not show', () => {
      for (const text of ['2027-01-01T25:00Z', '2027-01-01T12:60Z', '2027-01-01T12:00:61Z', '2027-01-01T12:00+99:99']) {
        expect(() => parseExpiry(text, NOW_MS), text).to.throw(InvalidArgumentError, 'a span such as 90d')
      }
    })

    it('no instant without a zone, which would mean another time on another machine', () => {
      for (const text of ['2027-01-31T12:00', '2027-01-31 12:00', '2027-01-31T12:00:00.000']) {
        expect(() => parseExpiry(text, NOW_MS), text).to.throw(InvalidArgumentError, 'a span such as 90d')
      }
    })

    it('nothing else, and says what it takes', () => {
      const rubbish = ['', ' ', 'tomorrow', 'never', '90', 'd', '90 d', '90D', '-1d', '1.5d', '1w', '1y', '100000d', '1e3d', '٣d']
      const otherDates = [
        '2027',
        '2027-01',
        '31.01.2027',
        '01/31/2027',
        '2027-1-31',
        '+010000-01-01',
        '-000001-01-01',
        '1800000000000',
        '2027-01-31Z',
      ]
      for (const text of [...rubbish, ...otherDates]) {
        expect(() => parseExpiry(text, NOW_MS), JSON.stringify(text)).to.throw(
          InvalidArgumentError,
          'It must be a span such as 90d, 12h or 30m, a day such as 2027-01-31, or an instant such as 2027-01-31T12:00Z.',
        )
      }
    })
  })
})
