import { expect } from 'chai'
import { makeCursors } from '../../../src/adapters/http/operations/cursor.js'
import { INT64_MAX, INT64_MIN, MAX_ASSIGNED_ID } from '../../../src/core/int64.js'

const SCOPE = '/pets?status='
const SIGNATURE_LENGTH = 22

describe('cursors', () => {
  const cursors = makeCursors(['a cursor secret that is long enough'])

  for (const after of [0n, 1n, -1n, 2n ** 53n + 1n, MAX_ASSIGNED_ID, INT64_MAX, INT64_MIN]) {
    it(`keep all 64 bits of the ID ${after}`, () => {
      const cursor = cursors.issue(SCOPE, after)
      expect(cursor).to.have.lengthOf(32)
      expect(cursors.verify(SCOPE, cursor)).to.equal(after)
    })
  }

  it('are invalid if the signature belongs to another ID', () => {
    const [one, other] = [cursors.issue(SCOPE, INT64_MIN), cursors.issue(SCOPE, INT64_MAX)]
    for (let length = 1; length < one.length; length += 1) {
      const mixed = one.slice(0, length) + other.slice(length)
      if (mixed !== one && mixed !== other) expect(cursors.verify(SCOPE, mixed), mixed).to.equal(undefined)
    }
    expect(one.slice(0, SIGNATURE_LENGTH)).to.not.equal(other.slice(0, SIGNATURE_LENGTH))
  })
})
