/** Requests up to `limit` rows in ascending ID order. */
export interface PageRequest<Status extends string> {
  /** 1 or more. */
  readonly limit: number
  /** Returns only rows with this status. If absent, all rows. */
  readonly status?: Status
  /** The ID of the last row of the previous page. Absent for the first page. */
  readonly after?: bigint
}

export interface Page<Row> {
  readonly rows: readonly Row[]
  /** The value of `after` for the next page. Absent on the last page. */
  readonly nextAfter?: bigint
}

/** Reads one page through `list`. Requests one row more than `limit`, because only that row shows whether there is a next page. */
export async function readPage<Row extends { readonly id: bigint }, Status extends string>(
  list: (request: PageRequest<Status>) => Promise<readonly Row[]>,
  request: PageRequest<Status>,
): Promise<Page<Row>> {
  const found = await list({ ...request, limit: request.limit + 1 })
  const rows = found.slice(0, request.limit)
  const last = rows.at(-1)
  return found.length > rows.length && last ? { rows, nextAfter: last.id } : { rows }
}
