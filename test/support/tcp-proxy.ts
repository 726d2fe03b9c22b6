import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'

/** Stands between two that talk TCP, and can fall silent without closing anything, as a lost route or a firewall does. */
export interface TcpProxy {
  /** `127.0.0.1:…` */
  readonly address: string
  /** How many connections it has had. */
  readonly connections: number
  /** From now on nothing passes. Who is connected stays so and hears nothing, who connects too. */
  fallSilent(): void
  /** New connections pass again. The old ones stay silent for ever: both ends have to find out by themselves. */
  passAgain(): void
  close(): Promise<void>
}

export interface TcpProxyOptions {
  /** Looks at what goes to the target; with true the proxy falls silent, and that is not passed on either. */
  readonly silencedBy?: (sent: Buffer) => boolean
}

/** `target`: a URL with host and port. */
export async function startTcpProxy(target: string, { silencedBy = () => false }: TcpProxyOptions = {}): Promise<TcpProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let silence = { isBroken: false }
  let isSilent = false
  let connections = 0

  const fallSilent = () => {
    isSilent = true
    silence.isBroken = true
  }
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
    return socket
  }
  const server = createServer((client) => {
    connections += 1
    keep(client)
    if (isSilent) return
    const upstream = keep(connect(Number(port), hostname))
    const line = silence
    const pass = (from: Socket, to: Socket, isWatched: boolean) => {
      from.on('data', (chunk) => {
        if (isWatched && !line.isBroken && silencedBy(chunk)) fallSilent()
        if (!line.isBroken) to.write(chunk)
      })
      from.on('close', () => line.isBroken || to.destroy())
    }
    pass(client, upstream, true)
    pass(upstream, client, false)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections
    },
    fallSilent,
    passAgain() {
      isSilent = false
      silence = { isBroken: false }
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
