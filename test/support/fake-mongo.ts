import type { Document } from 'mongodb'
import { Gate } from './gate.js'
import { makeHelloResponse, isHello, startMongoStub } from './mongo-stub.js'

/** A fake MongoDB that stores documents and supports only the commands that the service sends. Filters support equality and `$exists: false`. */
export interface FakeMongo {
  readonly url: string
  /** All commands with this name that were received, oldest first. */
  received(name: string): Document[]
  /** From now on, commands with this name wait at the gate before they get a response. */
  hold(name: string): Gate
  /** From now on, commands with this name fail with this code of MongoDB. */
  reject(name: string, code: number): void
  close(): Promise<void>
}

export async function startFakeMongo(): Promise<FakeMongo> {
  const collections = new Map<string, Document[]>()
  const gates = new Map<string, Gate>()
  const errorCodes = new Map<string, number>()
  const stub = await startMongoStub(async (command) => {
    const [name = ''] = Object.keys(command)
    await gates.get(name)?.pass()
    const code = errorCodes.get(name)
    if (code !== undefined) return { ok: 0, code, errmsg: `rejected with ${code}` }
    return respond(command, (collection) => {
      const documents = collections.get(collection) ?? []
      collections.set(collection, documents)
      return documents
    })
  })
  return {
    url: `mongodb://127.0.0.1:${stub.port}/fake`,
    received: (name) => stub.received(name),
    hold(name) {
      const gate = new Gate()
      gates.set(name, gate)
      return gate
    },
    reject: (name, code) => void errorCodes.set(name, code),
    close: () => stub.close(),
  }
}

function respond(command: Document, documentsOf: (collection: string) => Document[]): Document {
  if (isHello(command)) return makeHelloResponse({ logicalSessionTimeoutMinutes: 30 })
  if ('insert' in command) {
    documentsOf(command['insert']).push(...command['documents'])
    return { n: command['documents'].length }
  }
  if ('find' in command) return makeCursorResponse(documentsOf(command['find']).filter(matching(command['filter'])))
  if ('aggregate' in command) return makeCursorResponse([{ _id: 1, n: documentsOf(command['aggregate']).length }])
  if ('findAndModify' in command) {
    const found = documentsOf(command['findAndModify']).find(matching(command['query']))
    const { $set = {}, $inc = {} } = command['update']
    for (const [field, more] of Object.entries($inc)) Object.assign($set, { [field]: BigInt(found?.[field] ?? 0) + BigInt(more as number) })
    return { value: found ? Object.assign(found, $set) : null }
  }
  return {}
}

function matching(filter: Document): (document: Document) => boolean {
  const isMet = (found: unknown, wanted: unknown) =>
    (wanted as Document | null)?.['$exists'] === false ? found === undefined : found === wanted
  return (document) => Object.entries(filter).every(([field, wanted]) => isMet(document[field], wanted))
}

function makeCursorResponse(firstBatch: Document[]): Document {
  return { cursor: { id: 0n, ns: 'fake.documents', firstBatch } }
}
