import { expect } from 'chai'
import fc from 'fast-check'
import { INT64_MAX, INT64_MIN, isInt64, MAX_ASSIGNED_ID, parseInt64 } from '../../src/core/int64.js'

describe('int64', () => {
  it('ranges from -9223372036854775808 to 9223372036854775807, and assigned IDs end at 9007199254740991', () => {
    expect(INT64_MIN).to.equal(-9_223_372_036_854_775_808n)
    expect(INT64_MAX).to.equal(9_223_372_036_854_775_807n)
    expect(MAX_ASSIGNED_ID).to.equal(9_007_199_254_740_991n)
  })

  it('includes both ends and nothing beyond', () => {
    for (const value of [INT64_MIN, INT64_MAX, 0n, -1n, 2n ** 53n + 1n]) expect(isInt64(value)).to.equal(true)
    for (const value of [INT64_MIN - 1n, INT64_MAX + 1n, 2n ** 64n, -(10n ** 30n)]) expect(isInt64(value)).to.equal(false)
  })

  it('is parsed exactly from every decimal number in its range', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: INT64_MIN, max: INT64_MAX }), (value) => parseInt64(value.toString()) === value),
      { seed: 20_261_123, examples: [[INT64_MIN], [INT64_MAX], [0n], [-1n], [9_007_199_254_740_993n], [10n ** 18n]] },
    )
  })

  it('is not parsed from a decimal number outside its range', () => {
    const outside = ['9223372036854775808', '-9223372036854775809', '9999999999999999999', '10000000000000000000', '1'.repeat(1000)]
    for (const text of outside) expect(parseInt64(text), text).to.equal(undefined)
  })

  it('is not parsed from any other text, and 0 has only one form', () => {
    const garbage = ['', '-', '+1', '01', '-01', '00', '-0', ' 1', '1 ', '1\n', '1.0', '1.', '.1', '1e3', '0x10', '1_000', '1,000', '1n']
    for (const text of [...garbage, '٣', 'NaN', '--1', '−1']) expect(parseInt64(text), JSON.stringify(text)).to.equal(undefined)
  })
})
