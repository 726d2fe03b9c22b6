import type { CreateIndexesOptions, Db, IndexSpecification } from 'mongodb'
import { MongoServerError } from 'mongodb'
import { OperatorError, SettingError, StoreUnavailable } from '../../core/errors.js'
import { isOutage } from './mongo-call.js'
import { MongoConnection } from './mongo-connection.js'

interface Index {
  readonly collection: string
  readonly keys: IndexSpecification
  readonly options?: CreateIndexesOptions
}

const INDEXES: readonly Index[] = [
  { collection: 'pets', keys: { status: 1, _id: 1 } },
  { collection: 'orders', keys: { status: 1, _id: 1 } },
  { collection: 'apiKeys', keys: { secretHash: 1 }, options: { unique: true } },
  { collection: 'idempotency', keys: { expiresAt: 1 }, options: { expireAfterSeconds: 0 } },
]

/** Unauthorized, AuthenticationFailed. */
const REFUSALS_OF_THE_USER = new Set([13, 18])

/**
 * Makes every index that is missing; any number of replicas may do so at once. Building one over existing data takes as long
 * as it takes, so this uses connections of its own. Throws `StoreUnavailable`, and
 * `OperatorError` with the index and the reason when MongoDB answers that it will not.
 */
export async function ensureIndexes(url: string): Promise<void> {
  const connection = new MongoConnection(url, { responseTimeoutMs: 0 })
  try {
    const quorum = await commitQuorum(connection.db)
    for (const index of INDEXES) await ensureIndex(connection.db, index, quorum)
  } finally {
    await connection.close()
  }
}

/**
 * A replica set waits by default for every voting member before an index is ready, so that one member that is down blocks it: a
 * majority is enough. A standalone server rejects the option.
 */
async function commitQuorum(db: Db): Promise<Pick<CreateIndexesOptions, 'commitQuorum'>> {
  const { setName } = await explained('the command hello', () => db.command({ hello: 1 }))
  return setName === undefined ? {} : { commitQuorum: 'majority' }
}

async function ensureIndex(db: Db, { collection, keys, options }: Index, quorum: CreateIndexesOptions): Promise<void> {
  const what = `the index ${JSON.stringify(keys)} on ${db.databaseName}.${collection}`
  await explained(what, () => db.collection(collection).createIndex(keys, { ...options, ...quorum }))
}

async function explained<Result>(what: string, operation: () => Promise<Result>): Promise<Result> {
  try {
    return await operation()
  } catch (error) {
    if ((isOutage(error) && !saysWhy(error)) || isAborted(error))
      throw new StoreUnavailable('MongoDB could not be reached', { cause: error })
    const reason = error instanceof Error ? error.message : String(error)
    if (!(error instanceof MongoServerError)) throw new SettingError(`MONGODB_URL cannot be used: ${reason}`, { cause: error })
    if (REFUSALS_OF_THE_USER.has(Number(error.code))) {
      throw new OperatorError(`MongoDB refused the user of MONGODB_URL: ${reason}`, { cause: error })
    }
    throw new OperatorError(`MongoDB refused ${what}: ${reason}`, { cause: error })
  }
}

/** InternalError, UnknownError: to a request no more than that the server failed, here what speaks against the index. */
function saysWhy(error: unknown): boolean {
  return error instanceof MongoServerError && [1, 8].includes(Number(error.code))
}

/** IndexBuildAborted: by a failover, or somebody who dropped it meanwhile. */
function isAborted(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === 276
}
