import { expect } from 'chai'
import { parseTraceId } from '../../../src/adapters/http/pipeline/trace-id.js'

const ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

describe('the trace ID of a traceparent header', () => {
  for (const valid of [`00-${ID}-${PARENT}-01`, `00-${ID}-${PARENT}-00`, `01-${ID}-${PARENT}-01`, `cc-${ID}-${PARENT}-01-further-parts`]) {
    it(`is read from ${valid}`, () => {
      expect(parseTraceId(valid)).to.equal(ID)
    })
  }

  const invalid = [
    '',
    ID,
    `ff-${ID}-${PARENT}-01`,
    `00-${ID}-${PARENT}`,
    `00-${ID}-${PARENT}-01-more`,
    `00-${ID}-${PARENT}-01-`,
    `cc-${ID}-${PARENT}-01.more`,
    `00-${ID.toUpperCase()}-${PARENT}-01`,
    `00-${ID}0-${PARENT}-01`,
    `00-${ID.slice(1)}-${PARENT}-01`,
    `00-${'0'.repeat(32)}-${PARENT}-01`,
    `00-${ID}-${'0'.repeat(16)}-01`,
    `00-${ID}-${PARENT}-1`,
    `00-${ID}-${PARENT}-0g`,
    `00-${ID}-${PARENT}-01\n`,
    `00-${ID}-${PARENT}-01, 00-${ID}-${PARENT}-01`,
  ]
  for (const header of invalid) {
    it(`is absent in ${JSON.stringify(header)}`, () => {
      expect(parseTraceId(header)).to.equal(undefined)
    })
  }

  it('is absent without a header', () => {
    expect(parseTraceId(undefined)).to.equal(undefined)
  })
})
