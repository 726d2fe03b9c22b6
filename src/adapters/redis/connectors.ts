import type { Socket } from 'node:net'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Redis, RedisOptions, SentinelConnectionOptions } from 'ioredis'
import { AbstractConnector, SentinelConnector } from 'ioredis'

type ErrorListener = (error: Error) => unknown
type Connector = NonNullable<RedisOptions['Connector']>

/**
 * Connects to one server, like the connector of ioredis, but listens for every error of the socket. ioredis listens only once, and the
 * second error of a TLS socket, such as an alert after a rejected certificate, would end the process. For the nodes of a cluster, ioredis
 * also discards the first error and reports only that the connection is closed.
 */
export function makeConnector(onError: ErrorListener): Connector {
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
      socket.on('error', onError)
      this.stream = batchWrites(socket)
      return this.stream
    }
  } as Connector
}

/** Like `makeConnector`, but for connections to Sentinels and to the primary that they report. */
export function makeSentinelConnector(onError: ErrorListener): Connector {
  return class extends SentinelConnector {
    constructor(options: SentinelConnectionOptions) {
      super(options)
      // A private method, but there is no other way to set the options of connections to a Sentinel.
      const connectToSentinel = Reflect.get(this, 'connectToSentinel') as (endpoint: unknown, overrides: RedisOptions) => Redis
      const withConnector = (endpoint: unknown, overrides: RedisOptions = {}) =>
        connectToSentinel.call(this, endpoint, { ...overrides, Connector: makeConnector(onError) })
      Reflect.set(this, 'connectToSentinel', withConnector)
    }

    override async connect(...args: Parameters<SentinelConnector['connect']>) {
      const socket = await super.connect(...args)
      return batchWrites(socket.on('error', onError))
    }
  } as Connector
}

/** Sends all commands of one callback with one system call. A system call costs more CPU time than the rest of a command. */
function batchWrites<AnySocket extends Socket>(socket: AnySocket): AnySocket {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  let isBatching = false
  const writeWithOthers = (...args: unknown[]) => {
    if (!isBatching) {
      isBatching = true
      socket.cork()
      process.nextTick(() => {
        isBatching = false
        socket.uncork()
      })
    }
    return write(...args)
  }
  return Object.assign(socket, { write: writeWithOthers })
}
