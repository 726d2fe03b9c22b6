import type { CreateIndexesOptions, Db, IndexDescription } from 'mongodb'
import { MongoServerError } from 'mongodb'
import { OperatorError, StoreUnavailable } from '../../core/errors.js'
import { isOutage } from './mongo-call.js'
import { MongoConnection, toSettingError } from './mongo-connection.js'

/** By collection. */
const INDEXES: Readonly<Record<string, readonly IndexDescription[]>> = {
  pets: [{ key: { status: 1, _id: 1 } }],
  orders: [{ key: { status: 1, _id: 1 } }],
  apiKeys: [
    { key: { secretHash: 1 }, unique: true },
    { key: { 'oldSecret.hash': 1 }, unique: true, partialFilterExpression: { 'oldSecret.hash': { $exists: true } } },
  ],
  idempotency: [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }],
}

/** The codes of Unauthorized and AuthenticationFailed. */
const AUTHENTICATION_ERROR_CODES = new Set([13, 18])

/**
 * Creates all missing indexes. Replicas may run this concurrently. Uses its own connection without time limits, because indexing
 * existing data can take a long time. Throws `StoreUnavailable`, and `OperatorError` with the index and the reason if MongoDB rejects an index.
 */
export async function ensureIndexes(url: string): Promise<void> {
  const connection = new MongoConnection(url, { callTimeoutMs: 0 })
  try {
    const quorum = await getCommitQuorum(connection.db, url)
    for (const [collection, indexes] of Object.entries(INDEXES)) await ensureIndexesOf(connection.db, url, collection, indexes, quorum)
  } finally {
    await connection.close()
  }
}

/**
 * By default, a replica set waits for every voting member before an index is ready, so one unavailable member blocks it. A majority is
 * enough. A standalone server rejects the option.
 */
async function getCommitQuorum(db: Db, url: string): Promise<Pick<CreateIndexesOptions, 'commitQuorum'>> {
  const { setName } = await explainErrors('the command hello', url, () => db.command({ hello: 1 }))
  return setName === undefined ? {} : { commitQuorum: 'majority' }
}

/** In one command per collection: servers that are compatible with MongoDB may deadlock if replicas create two indexes of a collection at once. */
async function ensureIndexesOf(
  db: Db,
  url: string,
  collection: string,
  indexes: readonly IndexDescription[],
  quorum: CreateIndexesOptions,
): Promise<void> {
  const what = `an index of ${db.databaseName}.${collection}, one of ${indexes.map(({ key }) => JSON.stringify(key)).join(', ')}`
  await explainErrors(what, url, () => db.collection(collection).createIndexes([...indexes], quorum))
}

async function explainErrors<Result>(what: string, url: string, operation: () => Promise<Result>): Promise<Result> {
  try {
    return await operation()
  } catch (error) {
    if ((isOutage(error) && !hasReason(error)) || isAborted(error)) throw new StoreUnavailable('MongoDB is unavailable', { cause: error })
    if (!(error instanceof MongoServerError)) throw toSettingError(error, url)
    if (AUTHENTICATION_ERROR_CODES.has(Number(error.code))) {
      throw new OperatorError(`MongoDB rejected the user of MONGODB_URL: ${error.message}`, { cause: error })
    }
    throw new OperatorError(`MongoDB rejected ${what}: ${error.message}`, { cause: error })
  }
}

/**
 * Whether the error is InternalError or UnknownError. Requests treat these as an outage, but here they explain why an index cannot be
 * created.
 */
function hasReason(error: unknown): boolean {
  return error instanceof MongoServerError && [1, 8].includes(Number(error.code))
}

/** Whether the error is IndexBuildAborted: there was a failover, or the index was dropped in the meantime. */
function isAborted(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === 276
}
