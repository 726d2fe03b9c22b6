import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'
import type { Document } from 'mongodb'
import { BSON } from 'mongodb'

const HEADER_BYTES = 16
const OP_REPLY = 1
const OP_QUERY = 2004
const OP_MSG = 2013

/** A server that speaks enough of the MongoDB wire protocol to record commands and respond to them. */
export interface MongoStub {
  readonly port: number
  readonly openConnections: number
  /** All received commands, oldest first. */
  readonly commands: readonly Document[]
  /** The received commands with this name. */
  received(name: string): Document[]
  close(): Promise<void>
}

/** `respond` returns the response to a command. `ok` is 1 unless the response sets it. */
export async function startMongoStub(respond: (command: Document) => Document | Promise<Document>): Promise<MongoStub> {
  const commands: Document[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
    let received = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= HEADER_BYTES && received.length >= received.readInt32LE(0)) {
        const message = received.subarray(0, received.readInt32LE(0))
        received = received.subarray(message.length)
        const command = decodeCommand(message)
        commands.push(command)
        void Promise.resolve(respond(command)).then((response) => socket.write(encodeResponse(message, { ok: 1, ...response })))
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get openConnections() {
      return sockets.size
    },
    commands,
    received: (name) => commands.filter((command) => name in command),
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** The response to `hello` of a standalone server, or, with `setName`, of a member of a replica set. */
export function makeHelloResponse(more: Document): Document {
  return { helloOk: true, isWritablePrimary: true, ismaster: true, minWireVersion: 0, maxWireVersion: 25, ...more }
}

export function isHello(command: Document): boolean {
  return 'hello' in command || 'ismaster' in command
}

/** The driver sends `hello` as OP_QUERY, and other commands as OP_MSG, whose sections are a document or named lists of documents. */
function decodeCommand(message: Buffer): Document {
  const afterFlags = HEADER_BYTES + 4
  if (message.readInt32LE(12) === OP_QUERY) return documentAt(message, message.indexOf(0, afterFlags) + 1 + 8)
  const command: Document = {}
  for (let section = afterFlags; section < message.length; section += 1 + message.readInt32LE(section + 1)) {
    if (message[section] === 0) Object.assign(command, documentAt(message, section + 1))
    else Object.assign(command, listAt(message, section + 1))
  }
  return command
}

function documentAt(message: Buffer, offset: number): Document {
  return BSON.deserialize(message.subarray(offset, offset + message.readInt32LE(offset)))
}

function listAt(message: Buffer, offset: number): Document {
  const end = offset + message.readInt32LE(offset)
  const nameEnd = message.indexOf(0, offset + 4)
  const documents: Document[] = []
  for (let next = nameEnd + 1; next < end; next += message.readInt32LE(next)) documents.push(documentAt(message, next))
  return { [message.toString('utf8', offset + 4, nameEnd)]: documents }
}

function encodeResponse(request: Buffer, response: Document): Buffer {
  const isQuery = request.readInt32LE(12) === OP_QUERY
  // OP_REPLY: flags, cursor, first document, number of documents. OP_MSG: flags, kind of the section.
  const prefix = Buffer.alloc(isQuery ? 20 : 5)
  if (isQuery) prefix.writeInt32LE(1, 16)
  const body = Buffer.concat([prefix, BSON.serialize(response)])
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeInt32LE(HEADER_BYTES + body.length, 0)
  header.writeInt32LE(request.readInt32LE(4), 8)
  header.writeInt32LE(isQuery ? OP_REPLY : OP_MSG, 12)
  return Buffer.concat([header, body])
}
