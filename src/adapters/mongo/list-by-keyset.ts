import type { Collection, Filter } from 'mongodb'
import type { PageRequest } from '../../core/page.js'
import { findRows } from './find-rows.js'
import type { MongoConnection } from './mongo-connection.js'

/** Reads one page with an index on `_id` or `{status, _id}`, so reading any page costs the same. */
export async function listByKeyset<Status extends string, Row extends { _id: bigint; status: Status }>(
  mongo: MongoConnection,
  collection: Collection<Row>,
  { limit, status, after }: PageRequest<Status>,
): Promise<Row[]> {
  const filter = { ...(status === undefined ? {} : { status }), ...(after === undefined ? {} : { _id: { $gt: after } }) } as Filter<Row>
  return findRows(mongo, collection, { filter, sort: { _id: 1 }, limit })
}
