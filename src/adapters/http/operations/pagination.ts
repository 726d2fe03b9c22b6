import type { Page, PageRequest } from '../../../core/page.js'
import type { RequestContext } from '../pipeline/context.js'
import { respondWithJson } from '../pipeline/context.js'
import type { Cursors } from './cursor.js'
import { HttpError } from '../errors/http-error.js'
import { API_PREFIX } from './operation.js'

/** A listing as its address names it. */
export interface Listing {
  /** Below `API_PREFIX`. */
  readonly path: string
  readonly cursors: Cursors
  /** Empty where links are relative. */
  readonly publicUrl: string
}

interface ListQuery<Status extends string> {
  readonly limit: number
  readonly status?: Status
  readonly cursor?: string
}

/** The query with its cursor opened. Throws `invalid_cursor`. */
export function pageRequest<Status extends string>(
  { path, cursors }: Listing,
  { cursor, ...request }: ListQuery<Status>,
): PageRequest<Status> {
  if (cursor === undefined) return request
  const after = cursors.open(toCursorScope(path, request.status), cursor)
  if (after === undefined) throw new HttpError('invalid_cursor')
  return { ...request, after }
}

/** TestResponses with a bare array, and with a link to the next page while there is one. */
export function respondWithPage<Row, Status extends string>(
  ctx: RequestContext,
  { path, cursors, publicUrl }: Listing,
  { limit, status, cursor }: ListQuery<Status>,
  { rows, nextAfter }: Page<Row>,
  serialize: (rows: readonly Row[]) => string,
): void {
  const link = (rel: string, nextCursor?: string) => {
    const query = new URLSearchParams({ limit: `${limit}`, ...(status ? { status } : {}), ...(nextCursor ? { cursor: nextCursor } : {}) })
    return `<${publicUrl}${API_PREFIX}${path}?${query}>; rel="${rel}"`
  }
  const next = nextAfter === undefined ? [] : [link('next', cursors.seal(toCursorScope(path, status), nextAfter))]
  const first = cursor === undefined ? [] : [link('first')]
  if (next.length + first.length > 0) ctx.set('Link', [...next, ...first].join(', '))
  respondWithJson(ctx, 200, serialize(rows))
}

function toCursorScope(path: string, status = ''): string {
  return `${path}?status=${status}`
}
