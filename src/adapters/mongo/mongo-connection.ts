import type { Db } from 'mongodb'
import type { MongoClientOptions } from 'mongodb'
import { MongoClient } from 'mongodb'
import { OperatorError } from '../../core/errors.js'
import { callMongo, SERVER_TIME_LIMIT } from './mongo-call.js'

const DEFAULT_DATABASE = 'petstore'

/** The longest that the driver waits for a server, a free connection or an answer, each within the 1.5 s of a call. */
const NETWORK_TIMEOUT_MS = 1_400

export interface MongoConnectionOptions {
  /** The longest that an answer may take before its connection counts as broken; 0 for as long as the server is alive. */
  readonly answerTimeoutMs?: number
}

/** A pool of connections to one database, opened when it is first used and again whenever MongoDB returns. */
export class MongoConnection {
  readonly db: Db
  readonly #client: MongoClient

  /** `url` names the database in its path (`petstore` when it does not). Nothing is connected yet. Throws `OperatorError` for a URL that cannot be read. */
  constructor(url: string, { answerTimeoutMs = NETWORK_TIMEOUT_MS }: MongoConnectionOptions = {}) {
    this.#client = makeClient(url, {
      appName: 'petstore',
      serverSelectionTimeoutMS: NETWORK_TIMEOUT_MS,
      connectTimeoutMS: NETWORK_TIMEOUT_MS,
      waitQueueTimeoutMS: NETWORK_TIMEOUT_MS,
      // A frozen server and a half-open connection look alike: nothing comes back. Both end here.
      socketTimeoutMS: answerTimeoutMs,
      // Acknowledged means on the journals of a majority: no failover takes it back.
      writeConcern: { w: 'majority', journal: true, wtimeoutMS: NETWORK_TIMEOUT_MS },
      readConcern: { level: 'majority' },
      readPreference: 'primary',
      retryWrites: true,
    })
    const named = this.#client.db().databaseName
    const isDefault = named === 'test' && !/\/test([?]|$)/.test(url)
    this.db = this.#client.db(isDefault ? DEFAULT_DATABASE : named)
  }

  /** Never throws. */
  async isUp(): Promise<boolean> {
    return callMongo(() => this.db.command({ ping: 1, ...SERVER_TIME_LIMIT })).then(
      () => true,
      () => false,
    )
  }

  async close(): Promise<void> {
    await this.#client.close()
  }
}

function makeClient(url: string, options: MongoClientOptions): MongoClient {
  try {
    return new MongoClient(url, options)
  } catch (error) {
    // The driver's own words may repeat the URL, and with it the password.
    const reason = error instanceof Error && !error.message.includes('://') ? error.message : 'it is malformed'
    throw new OperatorError(`MONGODB_URL cannot be used: ${reason}`, { cause: error })
  }
}
