import { X509Certificate } from 'node:crypto'
import { tracingChannel } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { unescape } from 'node:querystring'
import { createSecureContext } from 'node:tls'
import type { Db } from 'mongodb'
import type { MongoClientOptions, MongoOptions } from 'mongodb'
import { MongoClient } from 'mongodb'
import { SettingError, StoreUnavailable } from '../../core/errors.js'
import { CALL_TIMEOUT_MS, callMongo, SERVER_TIME_LIMIT } from './mongo-call.js'

const DEFAULT_DATABASE = 'petstore'

/** The maximum time that the driver waits for a server or a free connection. It fits into the 1.5 s of a call, so that the driver's error is reported. */
const WAIT_TIMEOUT_MS = 1_400

/**
 * How long a connection may take to open, or be silent during an operation, before it counts as broken. If this were as short as a call, each
 * slow response would cost a new connection, and the driver would repeat the write on a server that is already too slow.
 */
const SILENCE_TIMEOUT_MS = 4_000
const SILENCE_AFTER_CALL_MS = SILENCE_TIMEOUT_MS - CALL_TIMEOUT_MS

/** The write concern times out this much earlier than the call, so that the error from the server still arrives. */
const RESPONSE_MARGIN_MS = 500

/** After an error, MongoDB counts as available again when calls have succeeded for this long. */
const RECOVERY_MS = 1_000

export interface MongoConnectionOptions {
  /** The maximum duration of a call. 0 waits for as long as the connection is open. */
  readonly callTimeoutMs?: number
  /** The maximum number of connections in the pool, unless the URL sets it. */
  readonly maxPoolSize?: number
}

/** Called when MongoDB becomes unavailable, with the reason, and when it is available again. */
export type MongoChangeListener = (isUp: boolean, reason?: string) => void

/** A collection and what is done with it, such as `pets.find`. */
export type MongoCall = `${string}.${'find' | 'insert' | 'update' | 'count'}`

/** Publishes each call, as ioredis does with its commands, so that it can be traced. */
const CALLS = tracingChannel('petstore:mongodb')

export interface MongoObserver {
  /** Called after each call, also if it failed. */
  observeCall(call: MongoCall, elapsedMs: number, result: 'ok' | 'error'): void
  /** Called when an operation has got a connection from the pool. */
  observePoolWait(waitMs: number): void
  /** Called when an operation could not get a connection. `reason`: `poolClosed`, `timeout` or `connectionError`. */
  countPoolFailure(reason: string): void
}

/** A connection pool for one database. Once `open`, it connects on demand and reconnects after an outage. */
export class MongoConnection {
  readonly db: Db
  readonly #client: MongoClient
  #listener: MongoChangeListener = () => undefined
  #isUp = true
  #lastOutageMs = 0
  #observer: MongoObserver | undefined

  /** Uses the database in the path of `url`, or `petstore`. Does not connect. Throws `SettingError` if the URL cannot be used. */
  constructor(url: string, options: MongoConnectionOptions = {}) {
    try {
      this.#client = new MongoClient(url, toClientOptions(options))
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

  /** Like `callMongo`. The outcome decides whether MongoDB counts as available. */
  async call<Value>(call: MongoCall, operation: () => Promise<Value>, timeoutMs?: number): Promise<Value> {
    const startedMs = performance.now()
    let result: 'ok' | 'error' = 'ok'
    try {
      const value = await CALLS.tracePromise(() => callMongo(operation, timeoutMs), { call })
      if (!this.#isUp) this.#reportSuccess()
      return value
    } catch (error) {
      if (error instanceof StoreUnavailable) {
        result = 'error'
        this.#reportOutage(error)
      }
      throw error
    } finally {
      this.#observer?.observeCall(call, performance.now() - startedMs, result)
    }
  }

  /** May be called once. */
  observe(observer: MongoObserver): void {
    this.#observer = observer
    this.#client.on('connectionCheckedOut', ({ durationMS }) => observer.observePoolWait(durationMS))
    this.#client.on('connectionCheckOutFailed', ({ reason }) => observer.countPoolFailure(reason))
  }

  onChange(listener: MongoChangeListener): void {
    this.#listener = listener
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

  #reportOutage(error: StoreUnavailable): void {
    this.#lastOutageMs = performance.now()
    if (!this.#isUp) return
    this.#isUp = false
    this.#listener(false, error.reason)
  }

  #reportSuccess(): void {
    if (performance.now() - this.#lastOutageMs < RECOVERY_MS) return
    this.#isUp = true
    this.#listener(true)
  }
}

function toClientOptions({ callTimeoutMs = CALL_TIMEOUT_MS, maxPoolSize }: MongoConnectionOptions): MongoClientOptions {
  return {
    appName: 'petstore',
    ...(maxPoolSize === undefined ? {} : { maxPoolSize }),
    serverSelectionTimeoutMS: WAIT_TIMEOUT_MS,
    waitQueueTimeoutMS: WAIT_TIMEOUT_MS,
    connectTimeoutMS: SILENCE_TIMEOUT_MS,
    // Also applies if the server hangs or the connection is half-open.
    socketTimeoutMS: callTimeoutMs === 0 ? 0 : callTimeoutMs + SILENCE_AFTER_CALL_MS,
    // Acknowledged writes are in the journals of a majority, so no failover loses them. Only these separate options override the options of the
    // URL; a `writeConcern` object does not.
    w: 'majority',
    journal: true,
    wtimeoutMS: Math.max(0, callTimeoutMs - RESPONSE_MARGIN_MS),
    readConcernLevel: 'majority',
    readPreference: 'primary',
    retryWrites: true,
    // The driver would repeat a read after the socket timeout, when nobody waits for the result.
    retryReads: false,
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
