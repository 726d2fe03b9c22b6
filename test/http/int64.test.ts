import { expect } from 'chai'
import fc from 'fast-check'
import { INT64_MAX, INT64_MIN } from '../../src/core/int64.js'
import { expectError } from '../support/responses.js'
import type { TestResponse, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { ampleKey } from '../support/with-api.js'

describe('a categoryId', () => {
  let api: TestApi
  let key: string

  beforeEach(async () => {
    api = await startApi({ config: { hasSampleData: false } })
    key = await ampleKey(api)
  })
  afterEach(() => api.stop())

  /** The literal goes into the body as it stands. */
  const postLiteral = (literal: string) =>
    api.send('/v1/pets', {
      method: 'POST',
      key,
      headers: { 'content-type': 'application/json' },
      body: `{"name":"Rex","categoryId":${literal}}`,
    })

  /** The digits in the answer's bytes: a JSON reader would round them. */
  const digitsIn = ({ text }: TestResponse) => /"categoryId":(-?\d+)[,}]/.exec(text)?.[1]

  async function digitsBack(literal: string): Promise<(string | undefined)[]> {
    const created = await postLiteral(literal)
    expect(created).to.include({ status: 201 }, `${literal}: ${created.text}`)
    const listed = await api.send('/v1/pets?limit=100', { key })
    const last = listed.text.slice(listed.text.lastIndexOf('{'))
    return [digitsIn(created), digitsIn(await api.send(created.headers.location ?? '', { key })), digitsIn({ ...listed, text: last })]
  }

  for (const digits of [
    '9223372036854775807',
    '-9223372036854775808',
    '9223372036854775806',
    '9007199254740991',
    '9007199254740992',
    '9007199254740993',
    '-9007199254740993',
    '1000000000000000001',
    '0',
    '1',
    '-1',
  ]) {
    it(`of ${digits} comes back digit for digit: when added, alone and in the list`, async () => {
      expect(await digitsBack(digits)).to.deep.equal([digits, digits, digits])
    })
  }

  for (const [literal, digits] of [
    ['7.0', '7'],
    ['7e0', '7'],
    ['70e-1', '7'],
    ['0.7E+1', '7'],
    ['1e3', '1000'],
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
    it(`spelt ${literal.slice(0, 40)} is ${digits}: numbers are judged by their value`, async () => {
      expect(await digitsBack(literal)).to.deep.equal([digits, digits, digits])
    })
  }

  for (const literal of [
    '9223372036854775808',
    '-9223372036854775809',
    '9.223372036854775808e18',
    '18446744073709551615',
    '18446744073709551616',
    '1e19',
    '1e400',
    '-1e400',
    '1e99999999999999999999',
    '1.5',
    '0.1',
    '1e-1',
    '1e-400',
    '9007199254740993.5',
    '0.99999999999999999999999',
    '"7"',
    '"9223372036854775807"',
    '""',
    'null',
    'true',
    '[7]',
    '{}',
  ]) {
    it(`of ${literal} is refused, and named`, async () => {
      expect(expectError(await postLiteral(literal), 400, 'validation_failed')).to.match(/^categoryId: must be a whole number/)
    })
  }

  for (const literal of ['07', '+7', '.5', '7.', '1e', '0x7', '1_000', 'NaN', 'Infinity', '-', '7n']) {
    it(`written ${literal} is not even JSON`, async () => void expectError(await postLiteral(literal), 400, 'invalid_json'))
  }

  it('of 65,000 digits is refused in less time than a client would notice', async () => {
    const zeros = '0'.repeat(65_000)
    for (const literal of [`1${zeros}1`, `1.${zeros}1`, `0.${zeros}1e65001`, `${'9'.repeat(65_000)}`, `1e${zeros}1`]) {
      const answer = await postLiteral(literal)
      expect(answer.status, literal.slice(0, 10)).to.be.oneOf([201, 400])
    }
  }).timeout(2000)

  it('missing is refused', async () => {
    const answer = await api.send('/v1/pets', { method: 'POST', key, body: { name: 'Rex' } })
    expect(expectError(answer, 400, 'validation_failed')).to.equal('categoryId: is required')
  })

  const int64 = fc.bigInt({ min: INT64_MIN, max: INT64_MAX })

  it('comes back digit for digit, whatever int64 it is', () =>
    fc.assert(
      fc.asyncProperty(int64, async (value) => {
        expect(await digitsBack(`${value}`)).to.deep.equal([`${value}`, `${value}`, `${value}`])
      }),
      { numRuns: 60 },
    ))

  it('comes back as its value, however the same value is spelt', () =>
    fc.assert(
      fc.asyncProperty(int64, fc.nat(25), fc.boolean(), async (value, zeros, inFraction) => {
        const noughts = '0'.repeat(zeros)
        // A zero has no digits to add noughts to: `00` is no JSON.
        const literal = inFraction || value === 0n ? `${value}.0${noughts}` : `${value}${noughts}e-${zeros}`
        expect(digitsIn(await postLiteral(literal))).to.equal(`${value}`)
      }),
      { numRuns: 60 },
    ))

  it('outside int64 is refused, however far outside', () =>
    fc.assert(
      fc.asyncProperty(fc.bigInt({ min: 1n, max: 2n ** 80n }), fc.boolean(), async (distance, below) => {
        const value = below ? INT64_MIN - distance : INT64_MAX + distance
        expectError(await postLiteral(`${value}`), 400, 'validation_failed')
      }),
      { numRuns: 40 },
    ))
})
