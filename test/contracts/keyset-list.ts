import { expect } from 'chai'
import { INT64_MAX, INT64_MIN, MAX_ASSIGNED_ID } from '../../src/core/int64.js'
import type { PageRequest } from '../../src/core/page.js'
import { shuffled } from '../support/builders.js'

interface Listed<Status extends string> {
  readonly id: bigint
  readonly status: Status
}

type List<Row extends Listed<Status>, Status extends string> = (request: PageRequest<Status>) => Promise<readonly Row[]>

/** The tests of every port that lists rows page by page. `openList` stores rows in the given order and returns the function that lists them. */
export function itListsByKeyset<Row extends Listed<Status>, Status extends string>(
  statuses: readonly Status[],
  aRow: (id: bigint, status: Status) => Row,
  openList: (rows: readonly Row[]) => Promise<List<Row, Status>>,
): void {
  const [first, second] = statuses as readonly [Status, Status]
  const OUT_OF_ORDER = [10n, 9n, 100n, MAX_ASSIGNED_ID, 2n, 2n ** 31n, 1n, 2n ** 32n + 1n, 11n]
  const IN_ORDER = [1n, 2n, 9n, 10n, 11n, 100n, 2n ** 31n, 2n ** 32n + 1n, MAX_ASSIGNED_ID]

  const getIds = (rows: readonly Row[]) => rows.map(({ id }) => id)
  const openListWithIds = (ids: readonly bigint[]) => openList(ids.map((id) => aRow(id, first)))

  it('returns an empty array if there are no rows', async () => {
    const list = await openList([])
    expect(await list({ limit: 20 })).to.deep.equal([])
    expect(await list({ limit: 20, status: first })).to.deep.equal([])
    expect(await list({ limit: 20, after: 5n })).to.deep.equal([])
  })

  it('lists rows in ascending numeric ID order, regardless of the order in which they were added', async () => {
    const list = await openListWithIds(OUT_OF_ORDER)
    expect(getIds(await list({ limit: 100 }))).to.deep.equal(IN_ORDER)
    expect(getIds(await list({ limit: 100, status: first }))).to.deep.equal(IN_ORDER)
  })

  it('lists each row with all its fields', async () => {
    const rows = statuses.map((status, index) => aRow(BigInt(index + 1), status))
    const list = await openList(rows)
    expect(await list({ limit: 100 })).to.deep.equal(rows)
    expect(await list({ limit: 100, status: second })).to.deep.equal([rows[1]])
  })

  it('lists at most `limit` rows, from 1 to 101, or all rows if there are fewer', async () => {
    const ids = Array.from({ length: 103 }, (_, index) => BigInt(index + 1))
    const list = await openListWithIds(ids)
    for (const limit of [1, 2, 20, 100, 101]) expect(getIds(await list({ limit }))).to.deep.equal(ids.slice(0, limit))
    expect(getIds(await list({ limit: 101, after: 98n }))).to.deep.equal([99n, 100n, 101n, 102n, 103n])
  })

  it('begins after `after`, whether a row with that ID exists or not', async () => {
    const list = await openListWithIds(OUT_OF_ORDER)
    expect(getIds(await list({ limit: 2, after: 9n }))).to.deep.equal([10n, 11n])
    expect(getIds(await list({ limit: 2, after: 50n }))).to.deep.equal([100n, 2n ** 31n])
    expect(getIds(await list({ limit: 2, after: 2n ** 32n }))).to.deep.equal([2n ** 32n + 1n, MAX_ASSIGNED_ID])
  })

  it('begins with the first row if `after` is below all IDs: 0, negative, the smallest int64', async () => {
    const list = await openListWithIds(OUT_OF_ORDER)
    for (const after of [0n, -1n, INT64_MIN]) expect(getIds(await list({ limit: 100, after }))).to.deep.equal(IN_ORDER)
  })

  it('lists nothing if `after` is the last ID or beyond, up to the largest int64', async () => {
    const list = await openListWithIds(OUT_OF_ORDER)
    for (const after of [MAX_ASSIGNED_ID, MAX_ASSIGNED_ID + 1n, INT64_MAX]) {
      expect(await list({ limit: 100, after })).to.deep.equal([])
      expect(await list({ limit: 100, after, status: first })).to.deep.equal([])
    }
  })

  it('lists only rows with the requested status, and fills the page with them', async () => {
    const ids = Array.from({ length: 60 }, (_, index) => BigInt(index + 1))
    const rows = ids.map((id) => aRow(id, statuses[Number(id) % statuses.length] as Status))
    const list = await openList(shuffled(rows))
    for (const status of statuses) {
      const ofStatus = rows.filter((row) => row.status === status)
      expect(await list({ limit: 100, status })).to.deep.equal(ofStatus)
      expect(await list({ limit: 5, status, after: 30n })).to.deep.equal(ofStatus.filter(({ id }) => id > 30n).slice(0, 5))
    }
  })

  it('lists nothing if no row has the requested status', async () => {
    const list = await openListWithIds(IN_ORDER)
    expect(await list({ limit: 100, status: second })).to.deep.equal([])
    expect(await list({ limit: 100, status: second, after: 9n })).to.deep.equal([])
  })

  it('lists every row exactly once across pages of any size', async () => {
    const rows = Array.from({ length: 41 }, (_, index) => aRow(BigInt((index + 1) ** 2), statuses[(index * 7) % statuses.length] as Status))
    const list = await openList(shuffled(rows))
    for (const status of [undefined, ...statuses]) {
      const expected = rows.filter((row) => status === undefined || row.status === status)
      for (const limit of [1, 3, 20, 41]) expect(await listAll(list, { limit, ...(status ? { status } : {}) })).to.deep.equal(expected)
    }
  })
}

/** Lists all rows in pages of `request.limit`. */
async function listAll<Row extends Listed<Status>, Status extends string>(
  list: List<Row, Status>,
  request: PageRequest<Status>,
): Promise<Row[]> {
  const page = await list(request)
  const last = page.at(-1)
  if (last && request.after !== undefined && last.id <= request.after) throw new Error(`The page after ${request.after} ends at ${last.id}`)
  return last ? [...page, ...(await listAll(list, { ...request, after: last.id }))] : []
}
