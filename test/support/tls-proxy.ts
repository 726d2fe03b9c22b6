import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import { connect } from 'node:net'
import { createServer } from 'node:tls'
import type { CertificateAuthority, IssuedCertificate } from './certificate-authority.js'

export interface TlsProxyOptions {
  readonly authority: CertificateAuthority
  readonly certificate: IssuedCertificate
}

/** Listens on 127.0.0.1, requires client certificates, and forwards the decrypted bytes. */
export interface TlsProxy {
  readonly port: number
  close(): Promise<void>
}

export async function startTlsProxy(target: { host: string; port: number }, options: TlsProxyOptions): Promise<TlsProxy> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
  }
  const server = createServer(
    {
      ca: readFileSync(options.authority.caFile),
      cert: readFileSync(options.certificate.certificateFile),
      key: readFileSync(options.certificate.keyFile),
      requestCert: true,
      rejectUnauthorized: true,
    },
    (client) => {
      const upstream = connect(target.port, target.host)
      keep(client)
      keep(upstream)
      client.pipe(upstream).pipe(client)
      client.on('close', () => upstream.destroy())
      upstream.on('close', () => client.destroy())
    },
  )
  // A failed handshake closes only its own connection.
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
