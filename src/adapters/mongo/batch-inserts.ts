import type { Collection, Document, OptionalUnlessRequiredId, WriteError } from 'mongodb'
import { MongoBulkWriteError, MongoServerError } from 'mongodb'
import { SERVER_TIME_LIMIT } from './mongo-call.js'

/** Resolves when the row is durable. Throws a `MongoServerError` if the row is rejected, for example because of a duplicate key. */
export type Insert<Row extends Document> = (row: OptionalUnlessRequiredId<Row>) => Promise<void>

/**
 * Sends rows that are inserted in the same callback of the event loop in one command, so that the cost of a command is shared. The rows do not
 * depend on each other: if one is rejected, the others are inserted.
 */
export function batchInserts<Row extends Document>(collection: Collection<Row>): Insert<Row> {
  let pendingRows: OptionalUnlessRequiredId<Row>[] = []
  let pendingInsert: Promise<readonly WriteError[]> | undefined

  async function insertAfterThisCallback(): Promise<readonly WriteError[]> {
    // Resolves after all promise callbacks.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    const rows = pendingRows
    pendingRows = []
    pendingInsert = undefined
    return insertAll(collection, rows)
  }

  return async (row) => {
    const rowIndex = pendingRows.push(row) - 1
    pendingInsert ??= insertAfterThisCallback()
    const rejected = (await pendingInsert).find(({ index }) => index === rowIndex)
    if (rejected) throw new MongoServerError({ code: rejected.code, message: rejected.errmsg ?? 'The row was rejected' })
  }
}

/** Returns the errors of the rows that were rejected. Throws if the rows may not be durable. */
async function insertAll<Row extends Document>(
  collection: Collection<Row>,
  rows: readonly OptionalUnlessRequiredId<Row>[],
): Promise<readonly WriteError[]> {
  try {
    await collection.insertMany(rows, { ordered: false, ...SERVER_TIME_LIMIT })
    return []
  } catch (error) {
    const hasOnlyRowErrors = error instanceof MongoBulkWriteError && error.result.hasWriteErrors() && !error.result.getWriteConcernError()
    if (!hasOnlyRowErrors) throw error
    return [error.writeErrors].flat()
  }
}
