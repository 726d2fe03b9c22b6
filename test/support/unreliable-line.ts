import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'

/** How a connection treats what goes through it. */
interface Manners {
  /** Nothing reaches the server any more. */
  isDumb: boolean
  /** Nothing comes back any more. */
  isDeaf: boolean
}

/** Stands between a replica and its Redis, and fails in the ways in which networks do. */
export interface UnreliableLine {
  readonly url: string
  /** How many connections it has had. */
  readonly connections: number
  /** TestResponses take so long from now on, on all connections, and keep their order. */
  delayMs: number
  /** Connections that are open now stay so and nothing passes on them again, nor on new ones. */
  fallSilent(): void
  /** What is sent still arrives, but no answer comes back: on open connections for ever, and on new ones. */
  dropReplies(): void
  /** New connections pass, to `url` where it is given. Those that were broken stay so. */
  pass(url?: string): void
  /** Closes all open connections. */
  cut(): void
  close(): Promise<void>
}

/** `target`: a URL with host and port. */
export async function anUnreliableLine(target: string): Promise<UnreliableLine> {
  const sockets = new Set<Socket>()
  let server = new URL(target)
  let manners: Manners = { isDumb: false, isDeaf: false }
  let isSilent = false
  let connections = 0

  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    return socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
  }
  const listener = createServer((client) => {
    connections += 1
    keep(client)
    if (isSilent) return
    const upstream = keep(connect(Number(server.port), server.hostname))
    const own = manners
    client.on('data', (chunk) => own.isDumb || upstream.write(chunk))
    upstream.on('data', (chunk) => {
      const answer = () => own.isDeaf || client.destroyed || client.write(chunk)
      if (line.delayMs > 0) setTimeout(answer, line.delayMs)
      else answer()
    })
    client.on('close', () => own.isDumb || upstream.destroy())
    upstream.on('close', () => own.isDumb || client.destroy())
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')

  const line: UnreliableLine = {
    url: `redis://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    get connections() {
      return connections
    },
    delayMs: 0,
    fallSilent() {
      isSilent = true
      Object.assign(manners, { isDumb: true, isDeaf: true })
    },
    dropReplies() {
      manners.isDeaf = true
    },
    pass(url) {
      if (url !== undefined) server = new URL(url)
      isSilent = false
      manners = { isDumb: false, isDeaf: false }
    },
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    async close() {
      line.cut()
      listener.close()
      await once(listener, 'close')
    },
  }
  return line
}
