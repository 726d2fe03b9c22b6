import type { PageRequest } from '../../core/page.js'

/** Rows in ascending ID order with an index by status, so that every page is equally fast to read. */
export class SortedRows<Row extends { readonly id: bigint; readonly status: Status }, Status extends string> {
  readonly #byId = new Map<bigint, Row>()
  readonly #ids: bigint[] = []
  readonly #idsByStatus = new Map<Status, bigint[]>()

  /** Returns false, and changes nothing, if the ID is taken. */
  insert(row: Row): boolean {
    if (this.#byId.has(row.id)) return false
    this.#byId.set(row.id, Object.freeze({ ...row }))
    insertSorted(this.#ids, row.id)
    const idsOfStatus = this.#idsByStatus.get(row.status) ?? []
    insertSorted(idsOfStatus, row.id)
    this.#idsByStatus.set(row.status, idsOfStatus)
    return true
  }

  find(id: bigint): Row | undefined {
    return this.#byId.get(id)
  }

  list({ limit, status, after }: PageRequest<Status>): Row[] {
    const ids = status === undefined ? this.#ids : (this.#idsByStatus.get(status) ?? [])
    const start = after === undefined ? 0 : findFirstAbove(ids, after)
    return ids.slice(start, start + limit).flatMap((id) => this.#byId.get(id) ?? [])
  }
}

/** IDs arrive almost in order, so this usually appends. */
function insertSorted(ids: bigint[], id: bigint): void {
  ids.splice(findFirstAbove(ids, id), 0, id)
}

function findFirstAbove(ids: readonly bigint[], id: bigint): number {
  let low = 0
  let high = ids.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ids[middle] as bigint) > id) high = middle
    else low = middle + 1
  }
  return low
}
