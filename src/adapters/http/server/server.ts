import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { createServer, ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Server as NetServer } from 'node:net'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Connection } from './connection.js'
import type { ErrorCode } from '../errors/error-catalogue.js'
import { ERROR_CATALOGUE, toErrorBody } from '../errors/error-catalogue.js'
import { toStrictTransportSecurity } from '../middleware/set-security-headers.js'
import { LINGER_MS, PIPELINE_LIMIT, SERVER_OPTIONS, SOCKET_TIMEOUT_MS } from './limits.js'

export interface ServerDeps {
  readonly log: Logger
  /** If it is `https`, responses to unreadable requests carry `Strict-Transport-Security` too. */
  readonly publicUrl?: string
  /** Connections beyond this number are closed on arrival. Unlimited if absent. */
  readonly maxConnections?: number
  /** Called for each connection that closed before its responses were complete. */
  readonly onClientGone?: () => void
  /** Called for each connection that is closed on arrival because of `maxConnections`. */
  readonly onConnectionDropped?: () => void
  /** Called for each message that gets an error response because it cannot be read as an HTTP request. */
  readonly onUnreadableRequest?: (code: ErrorCode) => void
}

interface ServerState {
  readonly connections: Map<Socket, Connection>
  acceptedCount: number
  isClosing: boolean
}

const states = new WeakMap<Server, ServerState>()

function getState(server: Server): ServerState {
  const state = states.get(server) ?? { connections: new Map<Socket, Connection>(), acceptedCount: 0, isClosing: false }
  states.set(server, state)
  return state
}

/** A server that passes every request to `listener` and responds in the same format to messages that the parser rejects. */
export function makeServer(listener: RequestListener, deps: ServerDeps): Server {
  const { log, maxConnections, onClientGone, onConnectionDropped } = deps
  const server = createServer(SERVER_OPTIONS)
  const state = getState(server)
  const { connections } = state

  server.timeout = SOCKET_TIMEOUT_MS
  if (maxConnections !== undefined) server.maxConnections = maxConnections
  server.on('drop', () => onConnectionDropped?.())
  // A client that closes its sending side after a complete request still gets the response. Node does not document this property.
  Object.assign(server, { httpAllowHalfOpen: true })

  server.on('connection', (socket) => {
    const connection = new Connection(socket)
    connections.set(socket, connection)
    // Node caches the IP address. After the client has reset the connection, it could no longer be read.
    void socket.remoteAddress
    state.acceptedCount += 1
    if (state.isClosing) connection.announceClose()
    // Node removes its error listener when it emits 'connect'. An error without a listener would end the process.
    socket.on('error', (error) => log.debug({ cause: error.message }, 'connection error'))
    socket.on('close', () => {
      connections.delete(socket)
      if (connection.wasAborted) onClientGone?.()
    })
  })

  const handle: RequestListener = (request, response) => {
    const connection = connections.get(request.socket)
    if (!connection || connection.isEnding) return
    connection.add(request, response)
    if (connection.unfinishedResponses > PIPELINE_LIMIT) request.socket.destroy()
    else listener(request, response)
  }
  server.on('request', handle)
  // `readBody` sends `100 Continue`, after all other checks. Other expectations get 417.
  server.on('checkContinue', handle)
  server.on('checkExpectation', handle)

  server.on('connect', (request, duplex) => {
    const socket = duplex as Socket
    // Node has detached the unfinished responses from the socket, so they can no longer be sent in order.
    if (connections.get(socket)?.isBusy !== false) socket.destroy()
    else respondToConnect(listener, request, socket)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, duplex) => {
    const socket = duplex as Socket
    if (!isParserError(error)) {
      socket.destroy()
      return
    }
    connections.get(socket)?.fail(error, (part) => {
      if (part === 'head' && socket.writable) respondToUnreadable(error, socket, deps)
      else endGracefully(socket)
    })
  })
  return server
}

/** Starts listening. Resolves to the URL of the server; rejects with Node's error if it cannot listen there. */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { address, family, port: actualPort } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${actualPort}`
}

/**
 * The next response on each open connection carries `Connection: close`, so that clients and load balancers open new connections, to other
 * replicas. Connections that are opened from now on stay open until the server drains: if a load balancer had to open one for each request,
 * some would be waiting to be accepted when the server stops listening.
 */
export function announceClose(server: Server): void {
  for (const connection of getState(server).connections.values()) connection.announceClose()
}

export interface DrainLimits {
  /** How long connections without a complete request stay open: a load balancer may still send a request on one of them. */
  readonly graceMs: number
  /** How long connections with unfinished responses stay open. At least `graceMs`. */
  readonly timeoutMs: number
}

/** Stops listening, finishes the responses to complete requests and closes every connection. */
export async function drain(server: Server, { graceMs, timeoutMs }: DrainLimits): Promise<void> {
  const startedMs = performance.now()
  const state = getState(server)
  const { connections } = state
  await waitForEmptyQueue(state)
  // Not `http.Server.close`, which closes idle connections at once.
  const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve))
  state.isClosing = true
  announceClose(server)
  const timer = setInterval(() => {
    const elapsedMs = performance.now() - startedMs
    for (const { socket, isServing } of connections.values()) {
      if (elapsedMs >= timeoutMs || (elapsedMs >= graceMs && !isServing)) socket.destroy()
    }
  }, 20)
  await closed
  clearInterval(timer)
}

/** The longest turn of the event loop that counts as short. */
const SHORT_TURN_MS = 0.2
const EMPTY_QUEUE_TIMEOUT_MS = 200

/**
 * Resolves when probably no connection is waiting to be accepted, or after `EMPTY_QUEUE_TIMEOUT_MS`. When a server stops listening, the
 * operating system resets the waiting connections, and a load balancer cannot repeat a POST that it has sent on one of them. Node accepts one
 * connection per turn of the event loop, so the queue is empty during a turn without a new connection, and it still is if that turn was short.
 */
async function waitForEmptyQueue(state: ServerState): Promise<void> {
  const endMs = performance.now() + EMPTY_QUEUE_TIMEOUT_MS
  for (;;) {
    const { acceptedCount } = state
    const turnStartMs = performance.now()
    await nextTurn()
    const nowMs = performance.now()
    const isEmpty = state.acceptedCount === acceptedCount && nowMs - turnStartMs < SHORT_TURN_MS
    if (isEmpty || nowMs >= endMs) return
  }
}

/** CONNECT gets the same response as any other method that a path does not allow. Node creates no response object for it. */
function respondToConnect(listener: RequestListener, request: IncomingMessage, socket: Socket): void {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.on('finish', () => endGracefully(socket.resume()))
  listener(request, response)
}

const PARSER_ERROR_CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** All other errors that reach `clientError` are errors of the connection. */
function isParserError({ code = '' }: NodeJS.ErrnoException): boolean {
  return code.startsWith('HPE_') || code in PARSER_ERROR_CODES
}

/** Sends the error body with a request ID, but without quota headers: no request was read, so no key and no quota is known. */
function respondToUnreadable(error: NodeJS.ErrnoException, socket: Socket, { log, publicUrl = '', onUnreadableRequest }: ServerDeps): void {
  const code = PARSER_ERROR_CODES[error.code ?? ''] ?? 'bad_request'
  const { status } = ERROR_CATALOGUE[code]
  const requestId = randomUUID()
  const body = JSON.stringify(toErrorBody(code))
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'X-Content-Type-Options: nosniff',
    'Cache-Control: no-store',
    ...Object.entries(toStrictTransportSecurity(publicUrl)).map(([name, value]) => `${name}: ${value}`),
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  endGracefully(socket)
  log.info({ requestId, status, code, cause: error.code }, 'unreadable request')
  onUnreadableRequest?.(code)
}

/**
 * Ends the sending side, and closes the connection when the client has ended its side, or after `LINGER_MS`. Until then, the server reads
 * and discards what the client sends: closing a socket with unread bytes resets the connection, and the client might lose the response.
 */
function endGracefully(socket: Socket): void {
  socket.end()
  void delay(LINGER_MS, undefined, { ref: false }).then(() => socket.destroy())
}
