import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { RedisOptions, SentinelConnectionOptions } from 'ioredis'
import { AbstractConnector, Redis, SentinelConnector } from 'ioredis'

type Report = (error: Error) => unknown
type Connector = NonNullable<RedisOptions['Connector']>

/** For the nodes of a cluster. ioredis discards the error that ends such a connection and says only that it was closed. */
export function makeNodeConnector(report: Report): Connector {
  return class extends AbstractConnector {
    readonly #options: RedisOptions

    constructor(options: RedisOptions) {
      super(options.disconnectTimeout ?? 0)
      this.#options = options
    }

    override async connect() {
      const { host = '127.0.0.1', port = 6379, tls } = this.#options
      this.connecting = true
      this.stream = tls ? connectTls({ host, port, ...tls }) : connectTcp({ host, port })
      this.stream.once('error', report)
      return this.stream
    }
  } as Connector
}

/** For Sentinel. ioredis discards the error that ends a connection to a Sentinel, too. */
export function makeSentinelConnector(report: Report): Connector {
  return class extends SentinelConnector {
    constructor(options: SentinelConnectionOptions) {
      super(options)
      // Private to the types; where a new version no longer has it, only the reason in the log is missing.
      const connect = Reflect.get(this, 'connectToSentinel') as ((...args: unknown[]) => Redis) | undefined
      if (connect === undefined) return
      Reflect.set(this, 'connectToSentinel', (...args: unknown[]) => connect.apply(this, args).on('error', report))
    }
  } as Connector
}
