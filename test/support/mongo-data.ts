import type { Db } from 'mongodb'
import type { MongoConnectionOptions } from '../../src/adapters/mongo/mongo-connection.js'
import { MongoConnection } from '../../src/adapters/mongo/mongo-connection.js'
import { ensureIndexes } from '../../src/adapters/mongo/mongo-indexes.js'
import type { OpenAdapter } from '../contracts/open-adapter.js'
import { until } from './until.js'

const COLLECTIONS = ['pets', 'orders', 'apiKeys', 'idempotency', 'counters']

/** A database that the replicas of a suite use, each with its own connection. */
export class MongoData {
  readonly #connections: MongoConnection[] = []

  private constructor(readonly url: string) {}

  static async withIndexes(url: string): Promise<MongoData> {
    await ensureIndexes(url)
    return new MongoData(url)
  }

  /** Connects another replica. */
  connect(options?: MongoConnectionOptions): MongoConnection {
    const connection = new MongoConnection(this.url, options)
    this.#connections.push(connection)
    return connection
  }

  /** Deletes all data but keeps the indexes. */
  async empty(): Promise<void> {
    const { db } = this.connect()
    await Promise.all(COLLECTIONS.map((name) => db.collection(name).deleteMany({})))
  }

  /** Opens an adapter on data that contains only what `fill` adds. */
  async open<Port>(
    make: (mongo: MongoConnection) => Port,
    fill: (db: Db) => Promise<unknown> = async () => {},
  ): Promise<OpenAdapter<Port>> {
    await this.empty()
    const mongo = this.connect()
    await fill(mongo.db)
    return { port: make(mongo), reopen: async () => make(this.connect()), close: () => this.close() }
  }

  /** Resolves when every open connection works. */
  async untilItIsBack(): Promise<void> {
    const areUp = async () => (await Promise.all(this.#connections.map((connection) => connection.isUp()))).every((isUp) => isUp)
    await until('MongoDB is available to every replica', areUp, 20_000)
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.splice(0).map((connection) => connection.close()))
  }
}
