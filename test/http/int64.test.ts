import { expect } from 'chai'
import fc from 'fast-check'
import { INT64_MAX, INT64_MIN } from '../../src/core/int64.js'
import { expectError } from '../support/responses.js'
import type { TestResponse } from '../support/api.js'
import { useApiPerTest } from '../support/api.js'

describe('a categoryId', () => {
  const api = useApiPerTest(() => ({ config: { hasSampleData: false } }))

  const postLiteral = (literal: string) => api.postPet(`{"name":"Rex","categoryId":${literal}}`)

  /** From the text of the response, because a JSON parser would round the digits. */
  const readDigits = ({ text }: TestResponse) => /"categoryId":(-?\d+)[,}]/.exec(text)?.[1]

  /** Creates a pet, and checks its category in the response, in the pet and at the end of the list. */
  async function expectDigits(literal: string, digits: string): Promise<void> {
    const created = await postLiteral(literal)
    expect(created).to.include({ status: 201 }, `${literal}: ${created.text}`)
    const found = await api.call(created.headers.location ?? '')
    const listed = await api.call('/v1/pets?limit=100')
    const last = { ...listed, text: listed.text.slice(listed.text.lastIndexOf('{')) }
    expect([created, found, last].map(readDigits)).to.deep.equal([digits, digits, digits])
  }

  for (const digits of [
    ...'9223372036854775807 -9223372036854775808 9223372036854775806 9007199254740991 9007199254740992'.split(' '),
    ...'9007199254740993 -9007199254740993 1000000000000000001 0 1 -1'.split(' '),
  ]) {
    it(`of ${digits} is returned digit for digit: on creation, alone and in the list`, () => expectDigits(digits, digits))
  }

  for (const [literal, digits] of [
    ['7.0', '7'],
    ['7e0', '7'],
    ['70e-1', '7'],
    ['0.7E+1', '7'],
    ['1E18', '1000000000000000000'],
    ['-2.50e1', '-25'],
    ['9.223372036854775807e18', '9223372036854775807'],
    ['-9.223372036854775808E+18', '-9223372036854775808'],
    ['9223372036854775807.000', '9223372036854775807'],
    ['92233720368547758070e-1', '9223372036854775807'],
    ['9007199254740993.0', '9007199254740993'],
    ['-0', '0'],
    ['-0.0', '0'],
    ['0e400', '0'],
    ['0.00e-99999999999999999999', '0'],
    [`1${'0'.repeat(400)}e-400`, '1'],
  ] as const) {
    it(`of ${literal.slice(0, 40)} is returned as ${digits}`, () => expectDigits(literal, digits))
  }

  for (const literal of [
    ...'9223372036854775808 -9223372036854775809 9.223372036854775808e18 18446744073709551615 18446744073709551616'.split(' '),
    ...'1e19 1e400 -1e400 1e99999999999999999999 1.5 0.1 1e-1 1e-400 9007199254740993.5 0.99999999999999999999999'.split(' '),
    ...'"7" "9223372036854775807" "" null true [7] {}'.split(' '),
  ]) {
    it(`of ${literal} returns 400`, async () => {
      expect(expectError(await postLiteral(literal), 400, 'validation_failed')).to.match(/^categoryId: /)
    })
  }

  it('of 65,000 digits gets a response within two seconds', async () => {
    const zeros = '0'.repeat(65_000)
    for (const literal of [`1${zeros}1`, `1.${zeros}1`, `0.${zeros}1e65001`, `${'9'.repeat(65_000)}`, `1e${zeros}1`]) {
      expect((await postLiteral(literal)).status, literal.slice(0, 10)).to.be.oneOf([201, 400])
    }
  }).timeout(2000)

  const int64 = fc.bigInt({ min: INT64_MIN, max: INT64_MAX })

  it('is returned digit for digit for every int64, however it is written', () =>
    fc.assert(
      fc.asyncProperty(int64, fc.nat(25), fc.constantFrom('integer', 'fraction', 'exponent'), async (value, count, form) => {
        const zeros = '0'.repeat(count)
        // 0 has no exponent form: `00e-1` is not JSON.
        const literal =
          form === 'integer' ? `${value}` : form === 'fraction' || value === 0n ? `${value}.0${zeros}` : `${value}${zeros}e-${count}`
        await expectDigits(literal, `${value}`)
      }),
      { numRuns: 100 },
    ))

  it('returns 400 for every value outside int64', () =>
    fc.assert(
      fc.asyncProperty(fc.bigInt({ min: 1n, max: 2n ** 80n }), fc.boolean(), async (distance, below) => {
        const value = below ? INT64_MIN - distance : INT64_MAX + distance
        expectError(await postLiteral(`${value}`), 400, 'validation_failed')
      }),
      { numRuns: 40 },
    ))
})
