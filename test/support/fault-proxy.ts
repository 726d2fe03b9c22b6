import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { TlsServerOptions } from './certificate-authority.js'

/** Forwards TCP connections from 127.0.0.1 to a server, and fails in the ways in which networks fail. */
export interface FaultProxy {
  readonly port: number
  /** `127.0.0.1:port` */
  readonly address: string
  /** Number of connections so far. */
  readonly connections: number
  /** Delays what the server sends, on all connections, and keeps its order. */
  delayMs: number
  /** Forwards nothing any more, on open and new connections, and closes none: like a lost route or a firewall. */
  fallSilent(): void
  /** Still forwards what clients send, but nothing that the server sends, on open and new connections. */
  dropReplies(): void
  /** Forwards new connections, to `target` if given. Connections with a fault keep it. */
  pass(target?: string): void
  /** Closes all open connections. */
  cut(): void
  close(): Promise<void>
}

export interface FaultProxyOptions {
  /** Called with what clients send. If it returns true, the proxy falls silent and does not forward it. */
  readonly silencedBy?: (sent: Buffer) => boolean
  /** Accepts TLS connections with client certificates and forwards the decrypted bytes. */
  readonly tls?: TlsServerOptions
}

/** `target`: a URL with host and port. */
export async function startFaultProxy(target: string, { silencedBy = () => false, tls }: FaultProxyOptions = {}): Promise<FaultProxy> {
  const sockets = new Set<Socket>()
  let server = new URL(target)
  let faults = { isSilent: false, dropsReplies: false }
  let connections = 0

  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    return socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
  }
  const forward = (client: Socket) => {
    connections += 1
    keep(client)
    if (faults.isSilent) return
    const upstream = keep(connect(Number(server.port), server.hostname))
    const own = faults
    client.on('data', (chunk: Buffer) => {
      if (!own.isSilent && silencedBy(chunk)) proxy.fallSilent()
      if (!own.isSilent) upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      const reply = () => own.isSilent || own.dropsReplies || client.destroyed || client.write(chunk)
      if (proxy.delayMs > 0) setTimeout(reply, proxy.delayMs)
      else reply()
    })
    client.on('close', () => own.isSilent || upstream.destroy())
    upstream.on('close', () => own.isSilent || client.destroy())
  }
  const listener = tls ? createTlsServer(toTlsOptions(tls), forward) : createServer(forward)
  // A failed handshake closes only its own connection.
  listener.on('tlsClientError', (_error, socket: Socket) => socket.destroy())
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo

  const proxy: FaultProxy = {
    port,
    address: `127.0.0.1:${port}`,
    get connections() {
      return connections
    },
    delayMs: 0,
    fallSilent() {
      faults.isSilent = true
    },
    dropReplies() {
      faults.dropsReplies = true
    },
    pass(newTarget) {
      if (newTarget !== undefined) server = new URL(newTarget)
      faults = { isSilent: false, dropsReplies: false }
    },
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    async close() {
      proxy.cut()
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
