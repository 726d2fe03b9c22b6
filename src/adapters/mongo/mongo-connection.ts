import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Db } from 'mongodb'
import type { MongoClientOptions, MongoOptions } from 'mongodb'
import { MongoClient } from 'mongodb'
import { SettingError } from '../../core/errors.js'
import { callMongo, SERVER_TIME_LIMIT } from './mongo-call.js'

const DEFAULT_DATABASE = 'petstore'

/** The longest that the driver waits for a server, a free connection or an answer, each within the 1.5 s of a call. */
const NETWORK_TIMEOUT_MS = 1_400

/** Less than the socket's time by this, so that the answer that a majority is missing arrives. */
const ANSWER_TRAVELS_MS = 400

export interface MongoConnectionOptions {
  /** The longest that an answer may take before its connection counts as broken; 0 for as long as the server is alive. */
  readonly responseTimeoutMs?: number
}

/** A pool of connections to one database. Once `open`, it opens connections when they are needed, and again whenever MongoDB returns. */
export class MongoConnection {
  readonly db: Db
  readonly #client: MongoClient

  /** `url` names the database in its path (`petstore` when it does not). Nothing is connected yet. Throws `SettingError` for a URL that cannot be used. */
  constructor(url: string, { responseTimeoutMs = NETWORK_TIMEOUT_MS }: MongoConnectionOptions = {}) {
    try {
      this.#client = new MongoClient(url, optionsWith(responseTimeoutMs))
      checkTlsFiles(this.#client.options)
      const named = this.#client.db().databaseName
      const isDefault = named === 'test' && !/^[^?]*\/test([?]|$)/.test(url)
      this.db = this.#client.db(isDefault ? DEFAULT_DATABASE : named)
    } catch (error) {
      throw new SettingError(`MONGODB_URL cannot be used: ${sayable(error)}`, { cause: error })
    }
  }

  /**
   * Throws `StoreUnavailable`, and may then be tried again. What is used without it opens by itself, but only once: a client of the
   * driver whose first attempt failed stays closed for ever.
   */
  async open(): Promise<void> {
    await callMongo(() => this.#client.connect())
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

function optionsWith(responseTimeoutMs: number): MongoClientOptions {
  return {
    appName: 'petstore',
    serverSelectionTimeoutMS: NETWORK_TIMEOUT_MS,
    connectTimeoutMS: NETWORK_TIMEOUT_MS,
    waitQueueTimeoutMS: NETWORK_TIMEOUT_MS,
    // A frozen server and a half-open connection look alike: nothing comes back. Both end here.
    socketTimeoutMS: responseTimeoutMs,
    // Acknowledged means on the journals of a majority: no failover takes it back. One by one, because only so they go before the URL's.
    w: 'majority',
    journal: true,
    wtimeoutMS: Math.max(0, responseTimeoutMs - ANSWER_TRAVELS_MS),
    readConcernLevel: 'majority',
    readPreference: 'primary',
    retryWrites: true,
  }
}

const TLS_FILE_CHECKS = {
  tlsCAFile: (pem: Buffer) => new X509Certificate(pem),
  tlsCertificateKeyFile: (pem: Buffer, { passphrase }: MongoOptions) => createSecureContext({ cert: pem, key: pem, passphrase }),
  tlsCRLFile: (pem: Buffer) => createSecureContext({ crl: pem }),
}

/** Without TLS, the driver ignores these files. With TLS, it reads them when it connects, so that a wrong path looks like an outage. */
function checkTlsFiles(options: MongoOptions): void {
  for (const name of Object.keys(TLS_FILE_CHECKS) as (keyof typeof TLS_FILE_CHECKS)[]) {
    const path = options[name]
    if (path === undefined) continue
    if (!options.tls) throw new Error(`${name} requires tls=true`)
    try {
      TLS_FILE_CHECKS[name](readFileSync(path), options)
    } catch (error) {
      throw new Error(`cannot read ${name} ${path} (${(error as NodeJS.ErrnoException).code})`, { cause: error })
    }
  }
}

/** The driver's message may contain the URL, a part of it or the value of an option, and so a password. */
function sayable(error: unknown): string {
  const message = error instanceof Error ? error.message : ''
  return message === '' || /:\/\/|^Unable to parse/.test(message) ? 'it is malformed' : message.replace(/,? got:?.*/s, '')
}
