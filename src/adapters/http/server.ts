import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { createServer, ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { ErrorCode } from './error-catalogue.js'
import { ERROR_CATALOGUE, errorBody } from './error-catalogue.js'
import { SERVER_OPTIONS } from './hardening.js'

const openSockets = new WeakMap<Server, ReadonlySet<Socket>>()

/** A server that gives everything it can to `listener`, and answers by itself, in the same form, what Node refuses before that. */
export function makeServer(listener: RequestListener, log: Logger): Server {
  const server = createServer(SERVER_OPTIONS, listener)
  // `100 Continue` is said by whoever reads the body, once nothing else speaks against it; other expectations are refused like any fault.
  server.on('checkContinue', listener)
  server.on('checkExpectation', listener)
  const sockets = new Set<Socket>()
  openSockets.set(server, sockets)
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('connect', (request, socket) => answerConnect(listener, request, socket))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => answerUnreadable(error, socket, log))
  return server
}

/** Starts listening. Resolves to the address to reach the server at; rejects with a sentence for the operator when the port is taken. */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { address, family, port: taken } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`
}

/** From now on answers tell their clients not to use the connection again: a balancer then turns to another replica by itself. */
export function announceClose(server: Server): void {
  server.prependListener('request', (_request, response) => response.setHeader('Connection', 'close'))
}

/** Lets requests in progress end, for `timeoutMs` at most; then cuts them. */
export async function drain(server: Server, timeoutMs: number): Promise<void> {
  // A connection whose request is in progress stays open after its answer, so idle ones are closed again and again.
  const closeIdle = setInterval(() => closeIdleConnections(server), 50)
  // Node itself no longer counts a connection with CONNECT on it.
  const cut = setTimeout(() => openSockets.get(server)?.forEach((socket) => socket.destroy()), timeoutMs)
  await new Promise((resolve) => server.close(resolve))
  clearInterval(closeIdle)
  clearTimeout(cut)
}

/** For Node a connection on which nothing was ever sent, as browsers open them beforehand, is not idle. */
function closeIdleConnections(server: Server): void {
  server.closeIdleConnections()
  for (const socket of openSockets.get(server) ?? []) if (socket.bytesRead === 0) socket.destroy()
}

/** Node has no answer of its own for CONNECT: it gets the one of any method that an address does not know. */
function answerConnect(listener: RequestListener, request: IncomingMessage, socket: Duplex): void {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket as Socket)
  // Nothing is ever tunnelled: a client that keeps its side open is not waited for.
  response.on('finish', () => socket.end(() => socket.destroy()))
  socket.on('error', () => socket.destroy())
  listener(request, response)
}

const CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** No request was read, so there is no key and no quota to report: the request id and the error body are all there is. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: Duplex, log: Logger): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const code = CODES[error.code ?? ''] ?? 'bad_request'
  const { status } = ERROR_CATALOGUE[code]
  const requestId = randomUUID()
  const body = JSON.stringify(errorBody(code))
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'X-Content-Type-Options: nosniff',
    'Cache-Control: no-store',
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
  ]
  // A client that keeps its side open is not waited for: it may be one of the slow ones that the timeouts are for.
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
  log.info({ requestId, status, code, cause: error.code }, 'unreadable request')
}
