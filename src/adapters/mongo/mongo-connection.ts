import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { unescape } from 'node:querystring'
import { createSecureContext } from 'node:tls'
import type { Db } from 'mongodb'
import type { MongoClientOptions, MongoOptions } from 'mongodb'
import { MongoClient } from 'mongodb'
import { SettingError } from '../../core/errors.js'
import { callMongo, SERVER_TIME_LIMIT } from './mongo-call.js'

const DEFAULT_DATABASE = 'petstore'

/** The maximum time that the driver waits for a server, a free connection or a response. Each must fit into the 1.5 s of a call. */
const NETWORK_TIMEOUT_MS = 1_400

/** The write concern times out this much earlier than the socket, so that the error from the server still arrives. */
const RESPONSE_MARGIN_MS = 400

export interface MongoConnectionOptions {
  /** How long to wait for a response before the connection counts as broken. 0 waits for as long as the connection is open. */
  readonly responseTimeoutMs?: number
}

/** A connection pool for one database. Once `open`, it connects on demand and reconnects after an outage. */
export class MongoConnection {
  readonly db: Db
  readonly #client: MongoClient

  /** Uses the database in the path of `url`, or `petstore`. Does not connect. Throws `SettingError` if the URL cannot be used. */
  constructor(url: string, { responseTimeoutMs = NETWORK_TIMEOUT_MS }: MongoConnectionOptions = {}) {
    try {
      this.#client = new MongoClient(url, makeOptions(responseTimeoutMs))
      const named = this.#client.db().databaseName
      const isDefault = named === 'test' && !/^[^?]*\/test([?]|$)/.test(url)
      this.db = this.#client.db(isDefault ? DEFAULT_DATABASE : named)
    } catch (error) {
      throw toSettingError(error, url)
    }
    checkTlsFiles(this.#client.options)
  }

  /**
   * Connects. Throws `StoreUnavailable`; you may then retry. Always call this first: operations also connect an unopened client, but if
   * that attempt fails, the driver's client stays closed permanently.
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

function makeOptions(responseTimeoutMs: number): MongoClientOptions {
  return {
    appName: 'petstore',
    serverSelectionTimeoutMS: NETWORK_TIMEOUT_MS,
    connectTimeoutMS: NETWORK_TIMEOUT_MS,
    waitQueueTimeoutMS: NETWORK_TIMEOUT_MS,
    // Also applies if the server hangs or the connection is half-open.
    socketTimeoutMS: responseTimeoutMs,
    // Acknowledged writes are in the journals of a majority, so no failover loses them. Only these separate options override the options of the
    // URL; a `writeConcern` object does not.
    w: 'majority',
    journal: true,
    wtimeoutMS: Math.max(0, responseTimeoutMs - RESPONSE_MARGIN_MS),
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

/** Without TLS, the driver ignores these files. With TLS, it reads them when it connects, so a wrong path would look like an outage. */
function checkTlsFiles(options: MongoOptions): void {
  for (const name of Object.keys(TLS_FILE_CHECKS) as (keyof typeof TLS_FILE_CHECKS)[]) {
    const path = options[name]
    if (path === undefined) continue
    if (!options.tls) throw new SettingError(`MONGODB_URL cannot be used: ${name} requires tls=true`)
    try {
      TLS_FILE_CHECKS[name](readFileSync(path), options)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new SettingError(`MONGODB_URL cannot be used: cannot read ${name} ${path} (${code})`, { cause: error })
    }
  }
}

/** The driver's message is repeated only if it contains no part of the URL except option names: any other part may be a secret. */
export function toSettingError(error: unknown, url: string): SettingError {
  const message = (error instanceof Error ? error.message : '').replace(/,? got:?.*/s, '')
  const optionNames = new Set(Array.from(url.matchAll(/[?&](\w+)=/g), ([, name]) => name))
  const parts = url.split(/[/?&=,:@+]/).filter((part) => part !== '' && !optionNames.has(part))
  const isSafe = message !== '' && !parts.some((part) => message.includes(part) || message.includes(unescape(part)))
  return new SettingError(`MONGODB_URL cannot be used: ${isSafe ? message : 'it is malformed or an option is not valid'}`, { cause: error })
}
