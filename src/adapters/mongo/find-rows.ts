import type { Collection, Document, Filter } from 'mongodb'
import { SERVER_TIME_LIMIT } from './mongo-call.js'
import type { MongoConnection } from './mongo-connection.js'

/** A database command does not inherit the read concern of the connection. Its read preference is `primary` by default. */
const MAJORITY_READ = { readConcern: { level: 'majority' } }

/**
 * Finds up to `limit` rows, with 64-bit integers as bigints. All rows must fit into one response, which is at most 16 MB. Needs no cursor, whose
 * iteration takes more CPU time than the rest of a `find`.
 */
export async function findRows<Row extends Document>(
  mongo: MongoConnection,
  { collectionName }: Collection<Row>,
  query: { filter: Filter<Row>; sort?: Record<string, 1>; limit: number },
): Promise<Row[]> {
  const command = { find: collectionName, ...query, batchSize: query.limit, singleBatch: true, ...MAJORITY_READ, ...SERVER_TIME_LIMIT }
  const response = await mongo.call(() => mongo.db.command(command, { useBigInt64: true }))
  return (response as { cursor: { firstBatch: Row[] } }).cursor.firstBatch
}
