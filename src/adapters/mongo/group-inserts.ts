import type { Collection, Document, OptionalUnlessRequiredId, WriteError } from 'mongodb'
import { MongoBulkWriteError, MongoServerError } from 'mongodb'
import { SERVER_TIME_LIMIT } from './mongo-call.js'

/** Resolves when the row is durable. Throws a `MongoServerError` if the row is rejected, for example because of a duplicate key. */
export type Insert<Row extends Document> = (row: OptionalUnlessRequiredId<Row>) => Promise<void>

/**
 * Sends rows that are inserted in the same turn of the event loop in one command, so that the cost of a command is shared. The rows do not
 * depend on each other: if one is rejected, the others are inserted.
 */
export function groupInserts<Row extends Document>(collection: Collection<Row>): Insert<Row> {
  let rowsOfThisTurn: OptionalUnlessRequiredId<Row>[] = []
  let insertion: Promise<readonly WriteError[]> | undefined

  async function insertAfterThisTurn(): Promise<readonly WriteError[]> {
    // Runs after all promise callbacks of the turn.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    const rows = rowsOfThisTurn
    rowsOfThisTurn = []
    insertion = undefined
    return insertAll(collection, rows)
  }

  return async (row) => {
    const rowIndex = rowsOfThisTurn.push(row) - 1
    insertion ??= insertAfterThisTurn()
    const rejected = (await insertion).find(({ index }) => index === rowIndex)
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
    const isOfRows = error instanceof MongoBulkWriteError && error.result.hasWriteErrors() && !error.result.getWriteConcernError()
    if (!isOfRows) throw error
    return [error.writeErrors].flat()
  }
}
