import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Conversation } from '../support/edge-fuzzer.js'
import { converse, sampleConversations } from '../support/edge-fuzzer.js'
import type { ServiceProcess } from '../support/process.js'
import { endProcesses, startService } from '../support/process.js'

const CONNECTIONS = process.env['LONG'] === '1' ? 100_000 : 3_000
const CONCURRENCY = 48
const BATCH = 500
/** Resident memory can grow by this much without a leak. */
const GROWTH_BYTES = 64 * 1024 * 1024
/** `FUZZ_SEED=<seed> npm test` repeats a run. */
const SEED = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

describe(`${CONNECTIONS} connections with random messages on both ports (FUZZ_SEED=${SEED})`, function () {
  this.timeout(CONNECTIONS * 30)
  let folder: string
  let service: ServiceProcess

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'petstore-fuzz-'))
    const plansFile = join(folder, 'plans.json')
    writeFileSync(plansFile, JSON.stringify(plansWithHighLimits()))
    service = await startService({ PLANS_FILE: plansFile, LOG_LEVEL: 'warn' })
  })
  after(async () => {
    await endProcesses()
    rmSync(folder, { recursive: true, force: true })
  })

  it('do not affect well-behaved clients, cause no error in the log, do not leak memory and do not prevent a shutdown', async () => {
    const wellBehavedClients = [runWellBehavedClient(service.url, service.keys.pro), watchHealth(service.adminUrl)]
    let flatBytes = 0
    for (let sent = 0; sent < CONNECTIONS; sent += BATCH) {
      const batch = sampleConversations(service.keys.business, SEED + sent, BATCH)
      await inParallel(batch, (conversation, index) => runConversation(index % 4 === 0 ? service.adminUrl : service.url, conversation))
      if (sent <= CONNECTIONS / 4) flatBytes = Math.max(flatBytes, await residentBytes(service))
    }
    const counts = await Promise.all(wellBehavedClients.map((client) => client.stop()))

    expect(Math.min(...counts)).to.be.above(CONNECTIONS / 100)
    expect(service.logLines.filter((line) => (JSON.parse(line) as { level: number }).level >= 50)).to.deep.equal([])
    expect((await residentBytes(service)) - flatBytes).to.be.below(GROWTH_BYTES)
    expect(await service.stop()).to.equal(0)
  })
})

/** Fails unless the service sent responses only, and no more of them than there were messages. */
async function runConversation(url: string, conversation: Conversation): Promise<void> {
  const received = await converse(url, conversation)
  const sent = Buffer.concat(conversation.segments).toString('latin1')
  const responses = received.match(/^HTTP\/1\.1 (?!100 )\d{3} /gm) ?? []
  const isHttp = received === '' || /^HTTP\/1\.1 \d{3} /.test(received)
  if (isHttp && responses.length <= sent.split('\r\n\r\n').length) return
  throw new Error(`${JSON.stringify(sent)} got ${JSON.stringify(received.slice(0, 10_000))}`)
}

async function inParallel<Item>(items: readonly Item[], work: (item: Item, index: number) => Promise<void>): Promise<void> {
  const queue = [...items.entries()]
  const workers = Array.from({ length: CONCURRENCY }, async () => {
    for (let next = queue.shift(); next; next = queue.shift()) await work(next[1], next[0])
  })
  await Promise.all(workers)
}

interface Client {
  /** Resolves to the number of requests. Rejects if a response was not the expected one. */
  stop(): Promise<number>
}

/** Sends requests on one connection, one at a time. */
function repeat(work: (agent: Agent) => Promise<void>): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let stopped = false
  const done = (async () => {
    let count = 0
    for (; !stopped; count += 1) await work(agent)
    return count
  })()
  // `stop` reports the error.
  done.catch(() => undefined)
  return {
    async stop() {
      stopped = true
      return done.finally(() => agent.destroy())
    },
  }
}

function runWellBehavedClient(url: string, key: string): Client {
  return repeat(async (agent) => {
    const listed = await exchange(agent, `${url}/v1/pets?limit=2`, key)
    expect(listed.status).to.equal(200)
    expect((JSON.parse(listed.text) as { id: number }[]).map(({ id }) => id)).to.deep.equal([1, 2])
    const body = JSON.stringify({ name: 'Bello', categoryId: 7 })
    const created = await exchange(agent, `${url}/v1/pets`, key, body)
    expect(created.status).to.equal(201)
    expect(JSON.parse(created.text)).to.include({ name: 'Bello', categoryId: 7, status: 'available' })
  })
}

function watchHealth(url: string): Client {
  return repeat(async (agent) => {
    expect((await exchange(agent, `${url}/health`)).status).to.equal(200)
  })
}

async function exchange(agent: Agent, url: string, key?: string, body?: string): Promise<{ status: number; text: string }> {
  const headers = {
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  }
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent, headers, method: body === undefined ? 'GET' : 'POST' })
    outgoing.once('error', reject)
    outgoing.once('response', (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      incoming.once('error', reject)
      incoming.once('end', () => resolve({ status: incoming.statusCode ?? 0, text }))
    })
    outgoing.end(body)
  })
}

function plansWithHighLimits(): object {
  const limits = { minute: 100_000_000, day: 100_000_000 }
  return {
    plans: { free: { limits }, pro: { limits }, business: { limits }, enterprise: {} },
    ban: { graceMs: 1_000, minStrikes: 60, firstMs: 60_000, longestMs: 86_400_000, forgetAfterMs: 86_400_000 },
    failedAuthenticationsPerMinute: 30,
  }
}

async function residentBytes({ adminUrl }: ServiceProcess): Promise<number> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
  return Number(/^process_resident_memory_bytes (\d+)$/m.exec(metrics)?.[1])
}
