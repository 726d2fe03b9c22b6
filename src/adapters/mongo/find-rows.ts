import type { Collection, Document, Filter } from 'mongodb'
import { SERVER_TIME_LIMIT } from './mongo-call.js'
import type { MongoConnection } from './mongo-connection.js'

/** A database command does not inherit the read concern of the connection. Its read preference is `primary` by default. */
const MAJORITY_READ = { readConcern: { level: 'majority' } }

/**
 * Finds up to `limit` rows, with 64-bit integers as bigints. Throws if they do not fit into one response, which is at most 16 MB. Needs no
 * cursor of the driver, whose iteration takes more CPU time than the rest of a `find`.
 */
export async function findRows<Row extends Document>(
  mongo: MongoConnection,
  { collectionName }: Collection<Row>,
  query: { filter: Filter<Row>; sort?: Record<string, 1>; limit: number },
): Promise<Row[]> {
  // If the batch size were the limit, the server would keep its cursor open.
  const command = { find: collectionName, ...query, batchSize: query.limit + 1, ...MAJORITY_READ, ...SERVER_TIME_LIMIT }
  const response = await mongo.call(`${collectionName}.find`, () => mongo.db.command(command, { useBigInt64: true }))
  const { id, firstBatch } = (response as { cursor: { id: bigint; firstBatch: Row[] } }).cursor
  if (id !== 0n) throw new Error(`MongoDB returned only ${firstBatch.length} of the rows in ${collectionName}, because they are too large`)
  return firstBatch
}
