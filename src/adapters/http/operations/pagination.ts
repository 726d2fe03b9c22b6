import type { Page, PageRequest } from '../../../core/page.js'
import { HttpError } from '../errors/http-error.js'
import type { Cursors } from './cursor.js'
import type { OperationResponse } from './operation.js'
import { API_PREFIX } from './operation.js'

export interface PaginationDeps {
  readonly cursors: Cursors
  /** Empty if links are relative. */
  readonly publicUrl: string
}

interface Listing<Row, Status extends string> extends PaginationDeps {
  /** Relative to `API_PREFIX`. */
  readonly path: string
  readonly list: (request: PageRequest<Status>) => Promise<Page<Row>>
  readonly serialize: (rows: readonly Row[]) => string
}

interface ListQuery<Status extends string> {
  readonly limit: number
  readonly status?: Status
  readonly cursor?: string
}

/** Returns a JSON array, and `Link` entries for the next page, if there is one, and for the first. Throws `invalid_cursor`. */
export async function getPage<Row, Status extends string>(
  { path, list, serialize, cursors, publicUrl }: Listing<Row, Status>,
  { cursor, ...query }: ListQuery<Status>,
): Promise<OperationResponse> {
  const scope = `${path}?status=${query.status ?? ''}`
  const after = cursor === undefined ? undefined : cursors.verify(scope, cursor)
  if (cursor !== undefined && after === undefined) throw new HttpError('invalid_cursor')
  const { rows, nextAfter } = await list({ ...query, ...(after === undefined ? {} : { after }) })

  const toLink = (rel: string, parameters: { cursor?: string }) => {
    const search = new URLSearchParams({ limit: `${query.limit}`, ...(query.status ? { status: query.status } : {}), ...parameters })
    return `<${publicUrl}${API_PREFIX}${path}?${search}>; rel="${rel}"`
  }
  const next = nextAfter === undefined ? [] : [toLink('next', { cursor: cursors.issue(scope, nextAfter) })]
  const first = cursor === undefined ? [] : [toLink('first', {})]
  const links = [...next, ...first]
  return { status: 200, json: serialize(rows), ...(links.length > 0 ? { headers: { Link: links.join(', ') } } : {}) }
}
