import type { Socket } from 'node:net'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Redis, RedisOptions, SentinelConnectionOptions } from 'ioredis'
import { AbstractConnector, SentinelConnector } from 'ioredis'

type Report = (error: Error) => unknown
type Connector = NonNullable<RedisOptions['Connector']>

/**
 * Connects to one server, as ioredis does, with two differences. A TLS socket may emit a second error, such as an alert after a
 * certificate was rejected, and ioredis listens once: the second would end the process. And for the nodes of a cluster ioredis
 * discards the first one and says only that the connection was closed.
 */
export function makeConnector(report: Report): Connector {
  return class extends AbstractConnector {
    readonly #options: RedisOptions

    constructor(options: RedisOptions) {
      super(options.disconnectTimeout ?? 0)
      this.#options = options
    }

    override async connect(): Promise<Socket> {
      const { host = '127.0.0.1', port = 6379, tls } = this.#options
      this.connecting = true
      const socket = tls ? connectTls({ host, port, ...tls }) : connectTcp({ host, port })
      socket.on('error', report)
      this.stream = socket
      return socket
    }
  } as Connector
}

/** The same for the connections to a Sentinel and to the primary that it names. */
export function makeSentinelConnector(report: Report): Connector {
  return class extends SentinelConnector {
    constructor(options: SentinelConnectionOptions) {
      super(options)
      // Private to the types, and the only way to the options of connections to a Sentinel.
      const connectToSentinel = Reflect.get(this, 'connectToSentinel') as (endpoint: unknown, overrides: RedisOptions) => Redis
      const withConnector = (endpoint: unknown, overrides: RedisOptions = {}) =>
        connectToSentinel.call(this, endpoint, { ...overrides, Connector: makeConnector(report) })
      Reflect.set(this, 'connectToSentinel', withConnector)
    }

    override async connect(...args: Parameters<SentinelConnector['connect']>) {
      const socket = await super.connect(...args)
      return socket.on('error', report)
    }
  } as Connector
}
