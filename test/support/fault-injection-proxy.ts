import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { TlsServerOptions } from './certificate-authority.js'

/** Forwards TCP connections from 127.0.0.1 to a server, and simulates network failures. */
export interface FaultInjectionProxy {
  readonly port: number
  /** `127.0.0.1:port` */
  readonly address: string
  /** Number of connections so far. */
  readonly connections: number
  /** Delay for everything that the server sends, on all connections. Keeps the order. */
  delayMs: number
  /** Drops all traffic on open and new connections, and closes none of them, like a firewall that drops packets. */
  stopForwarding(): void
  /** Forwards what clients send but drops what the server sends, on open and new connections. */
  dropResponses(): void
  /** Forwards new connections, to `target` if given. Connections that were open during a fault stay affected by it. */
  resume(target?: string): void
  /** Closes all open connections. */
  closeConnections(): void
  close(): Promise<void>
}

export interface FaultInjectionProxyOptions {
  /** Called with each chunk that a client sends. If it returns true, the proxy calls `stopForwarding` and drops the chunk. */
  readonly stopForwardingOn?: (sent: Buffer) => boolean
  /** Accepts TLS connections with client certificates and forwards the decrypted bytes. */
  readonly tls?: TlsServerOptions
}

/** `target`: a URL with host and port. */
export async function startFaultInjectionProxy(
  target: string,
  { stopForwardingOn = () => false, tls }: FaultInjectionProxyOptions = {},
): Promise<FaultInjectionProxy> {
  const sockets = new Set<Socket>()
  let server = new URL(target)
  let mode = { isBlocked: false, dropsResponses: false }
  let connections = 0

  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    return socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
  }
  const forward = (client: Socket) => {
    connections += 1
    keep(client)
    if (mode.isBlocked) return
    const upstream = keep(connect(Number(server.port), server.hostname))
    const ownMode = mode
    client.on('data', (chunk: Buffer) => {
      if (!ownMode.isBlocked && stopForwardingOn(chunk)) proxy.stopForwarding()
      if (!ownMode.isBlocked) upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      const reply = () => ownMode.isBlocked || ownMode.dropsResponses || client.destroyed || client.write(chunk)
      if (proxy.delayMs > 0) setTimeout(reply, proxy.delayMs)
      else reply()
    })
    client.on('close', () => ownMode.isBlocked || upstream.destroy())
    upstream.on('close', () => ownMode.isBlocked || client.destroy())
  }
  const listener = tls ? createTlsServer(toTlsOptions(tls), forward) : createServer(forward)
  // A failed handshake closes only its own connection.
  listener.on('tlsClientError', (_error, socket: Socket) => socket.destroy())
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo

  const proxy: FaultInjectionProxy = {
    port,
    address: `127.0.0.1:${port}`,
    get connections() {
      return connections
    },
    delayMs: 0,
    stopForwarding() {
      mode.isBlocked = true
    },
    dropResponses() {
      mode.dropsResponses = true
    },
    resume(newTarget) {
      if (newTarget !== undefined) server = new URL(newTarget)
      mode = { isBlocked: false, dropsResponses: false }
    },
    closeConnections() {
      for (const socket of sockets) socket.destroy()
    },
    async close() {
      proxy.closeConnections()
      listener.close()
      await once(listener, 'close')
    },
  }
  return proxy
}

function toTlsOptions({ authority, certificate }: TlsServerOptions) {
  return {
    ca: readFileSync(authority.caFile),
    cert: readFileSync(certificate.certificateFile),
    key: readFileSync(certificate.keyFile),
    requestCert: true,
    rejectUnauthorized: true,
  }
}
