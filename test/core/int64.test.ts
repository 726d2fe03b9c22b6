import { expect } from 'chai'
import fc from 'fast-check'
import { INT64_MAX, INT64_MIN, isInt64, MAX_ASSIGNED_ID, parseInt64 } from '../../src/core/int64.js'

describe('int64', () => {
  it('ranges from -9223372036854775808 to 9223372036854775807, and assigned IDs end at 9007199254740991', () => {
    expect([INT64_MIN, INT64_MAX]).to.deep.equal([-9_223_372_036_854_775_808n, 9_223_372_036_854_775_807n])
    expect(MAX_ASSIGNED_ID).to.equal(9_007_199_254_740_991n)
    for (const value of [INT64_MIN, INT64_MAX, 0n, -1n, 2n ** 53n + 1n]) expect(isInt64(value)).to.equal(true)
    for (const value of [INT64_MIN - 1n, INT64_MAX + 1n, 2n ** 64n, -(10n ** 30n)]) expect(isInt64(value)).to.equal(false)
  })

  it('is parsed without losing digits', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: INT64_MIN, max: INT64_MAX }), (value) => parseInt64(value.toString()) === value),
      { seed: 20_261_123, examples: [[INT64_MIN], [INT64_MAX], [0n], [-1n], [9_007_199_254_740_993n], [10n ** 18n]] },
    )
  })

  for (const text of [
    ...'9223372036854775808 -9223372036854775809 9999999999999999999 10000000000000000000'.split(' '),
    ...' - +1 01 -01 00 -0 1.0 1. .1 1e3 0x10 1_000 1,000 1n ٣ NaN --1 −1'.split(' '),
    '1'.repeat(1000),
    ' 1',
    '1 ',
    '1\n',
  ]) {
    it(`is not parsed from ${JSON.stringify(text.slice(0, 30))}`, () => expect(parseInt64(text)).to.equal(undefined))
  }
})
