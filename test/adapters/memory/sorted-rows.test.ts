import { expect } from 'chai'
import fc from 'fast-check'
import { SortedRows } from '../../../src/adapters/memory/sorted-rows.js'

type Status = 'red' | 'green'
interface Row {
  readonly id: bigint
  readonly status: Status
}

describe('sorted rows', () => {
  it('list the same rows as a simple filter and sort, for any rows and any request', () => {
    const anId = fc.bigInt({ min: -20n, max: 60n })
    const aStatus = fc.constantFrom<Status>('red', 'green')
    const aRequest = fc.record({ limit: fc.integer({ min: 1, max: 30 }), status: aStatus, after: anId }, { requiredKeys: ['limit'] })
    fc.assert(
      fc.property(fc.array(fc.record({ id: anId, status: aStatus })), aRequest, (offered, request) => {
        const rows = new SortedRows<Row, Status>()
        const there: Row[] = []
        for (const row of offered) {
          const isNew = there.every(({ id }) => id !== row.id)
          expect(rows.insert(row)).to.equal(isNew)
          if (isNew) there.push(row)
        }
        const { limit, status, after } = request
        const expected = there
          .filter((row) => (status === undefined || row.status === status) && (after === undefined || row.id > after))
          .toSorted((a, b) => (a.id < b.id ? -1 : 1))
          .slice(0, limit)
        expect(rows.list(request)).to.deep.equal(expected)
        for (const row of there) expect(rows.find(row.id)).to.deep.equal(row)
      }),
      { seed: 20_261_123, numRuns: 1000 },
    )
  })

  it('return a new list each time', () => {
    const rows = new SortedRows<Row, Status>()
    rows.insert({ id: 1n, status: 'red' })
    rows.list({ limit: 10 }).pop()
    expect(rows.list({ limit: 10 })).to.have.lengthOf(1)
  })
})
