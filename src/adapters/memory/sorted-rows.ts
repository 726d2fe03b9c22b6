import type { PageRequest } from '../../core/page.js'

/** Rows in ascending id, with an index by status, so that page 5,000 costs what page 1 costs. */
export class SortedRows<Row extends { readonly id: bigint; readonly status: Status }, Status extends string> {
  readonly #byId = new Map<bigint, Row>()
  readonly #ids: bigint[] = []
  readonly #idsByStatus = new Map<Status, bigint[]>()

  /** False, and nothing changed, when the id is taken. */
  insert(row: Row): boolean {
    if (this.#byId.has(row.id)) return false
    this.#byId.set(row.id, Object.freeze({ ...row }))
    insertSorted(this.#ids, row.id)
    const ofStatus = this.#idsByStatus.get(row.status) ?? []
    insertSorted(ofStatus, row.id)
    this.#idsByStatus.set(row.status, ofStatus)
    return true
  }

  find(id: bigint): Row | undefined {
    return this.#byId.get(id)
  }

  list({ limit, status, after }: PageRequest<Status>): Row[] {
    const ids = status === undefined ? this.#ids : (this.#idsByStatus.get(status) ?? [])
    const start = after === undefined ? 0 : firstAbove(ids, after)
    return ids.slice(start, start + limit).flatMap((id) => this.#byId.get(id) ?? [])
  }
}

/** Ids come nearly in order, so this mostly appends. */
function insertSorted(ids: bigint[], id: bigint): void {
  ids.splice(firstAbove(ids, id), 0, id)
}

function firstAbove(ids: readonly bigint[], id: bigint): number {
  let low = 0
  let high = ids.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ids[middle] as bigint) > id) high = middle
    else low = middle + 1
  }
  return low
}
