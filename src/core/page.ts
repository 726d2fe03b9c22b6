/** Asks a store for up to `limit` rows in ascending id, beginning behind `after`. */
export interface PageRequest<Status extends string> {
  /** 1 or more. */
  readonly limit: number
  /** Only rows of this status; all when absent. */
  readonly status?: Status
  /** The id of the last row already seen; absent for the first page. */
  readonly after?: bigint
}

export interface Page<Row> {
  readonly rows: readonly Row[]
  /** What to pass as `after` for the next page; absent on the last page. */
  readonly nextAfter?: bigint
}

/** Reads a page through `list`, keyVersion for one row more than wanted: only that row tells whether there is more. */
export async function readPage<Row extends { readonly id: bigint }, Status extends string>(
  list: (request: PageRequest<Status>) => Promise<readonly Row[]>,
  request: PageRequest<Status>,
): Promise<Page<Row>> {
  const found = await list({ ...request, limit: request.limit + 1 })
  const rows = found.slice(0, request.limit)
  const last = rows.at(-1)
  return found.length > rows.length && last ? { rows, nextAfter: last.id } : { rows }
}
