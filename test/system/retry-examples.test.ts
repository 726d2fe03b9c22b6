import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { startApi } from '../support/api.js'

/** Tests run in the root of the repository. */
const page = readFileSync('docs/api/retries.md', 'utf8')

const EXAMPLES = [
  { language: 'bash', program: 'bash', file: 'retry.sh' },
  { language: 'js', program: process.execPath, file: 'retry.mjs' },
  { language: 'python', program: 'python3', file: 'retry.py' },
] as const

const SAMPLE_PETS = 10

/** Handles one request in place of the service. */
type Interference = (response: ServerResponse) => void

const reject =
  (status: number, retryAfterSeconds: number): Interference =>
  (response) => {
    const headers = { 'Content-Type': 'application/json', 'Retry-After': `${retryAfterSeconds}` }
    response.writeHead(status, headers).end(JSON.stringify({ code: 'from_the_test', message: 'From the test.', status }))
  }

const dropConnection: Interference = (response) => response.destroy()

/** An HTTP proxy in front of the service that interferes with the first requests. */
class InterferingProxy {
  readonly idempotencyKeys: unknown[] = []
  /** When each request arrived, on a monotonic clock. */
  readonly arrivedAtMs: number[] = []
  readonly #server: Server

  constructor(
    private readonly targetUrl: string,
    private readonly interferences: readonly (Interference | undefined)[],
    private readonly afterwards?: Interference,
  ) {
    this.#server = createServer((incoming, response) => this.#handle(incoming, response))
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #handle(incoming: IncomingMessage, response: ServerResponse): void {
    const interfere = this.interferences[this.arrivedAtMs.length] ?? this.afterwards
    this.arrivedAtMs.push(performance.now())
    this.idempotencyKeys.push(incoming.headers['idempotency-key'])
    if (interfere && interfere !== dropConnection) return interfere(response)

    const { method, headers } = incoming
    const outgoing = request(`${this.targetUrl}${incoming.url}`, { method, headers, agent: false }, (upstream) => {
      // The service has added the pet, but its response never arrives.
      if (interfere) return interfere(response)
      response.writeHead(upstream.statusCode ?? 502, upstream.headers)
      upstream.pipe(response)
    })
    incoming.pipe(outgoing)
  }
}

type Example = (typeof EXAMPLES)[number]

interface Outcome {
  readonly example: Example
  readonly exitCode: unknown
  readonly stdout: string
  readonly stderr: string
  readonly proxy: InterferingProxy
  /** Number of pets in the store after the example has ended. */
  readonly pets: number
}

describe('docs/api/retries.md', function () {
  this.timeout(20_000)

  it('has one example in each language, with its output', () => {
    expect(page.match(/^It prints:$/gm)).to.have.length(EXAMPLES.length)
    for (const { language } of EXAMPLES) expect(exampleIn(language).output).to.match(/^201 /)
  })

  it('adds one pet despite a 429, a 503 and a lost response, and waits at least Retry-After', async () => {
    for (const { example, proxy, pets, ...ended } of await runEach([reject(429, 1), reject(503, 1), dropConnection])) {
      const { language } = example
      expect(ended, language).to.deep.equal({ exitCode: 0, stdout: exampleIn(language).output, stderr: '' })
      expect(proxy.arrivedAtMs, language).to.have.length(4)
      const [first, second, third] = proxy.arrivedAtMs as [number, number, number]
      expect(second - first, language).to.be.at.least(1000)
      expect(third - second, language).to.be.at.least(1000)
      expect(new Set(proxy.idempotencyKeys), language).to.have.property('size', 1)
      expect(proxy.idempotencyKeys[0], language).to.match(/^[\w-]{36}$/)
      expect(pets, language).to.equal(SAMPLE_PETS + 1)
    }
  })

  it('gives up after five attempts', async () => {
    for (const { example, proxy, pets, ...ended } of await runEach([], dropConnection)) {
      expect(ended, example.language).to.deep.include({ exitCode: 1, stdout: '' })
      expect(ended.stderr, example.language).to.include('Gave up after attempt 5')
      expect(proxy.arrivedAtMs, example.language).to.have.length(5)
      expect(pets, example.language).to.equal(SAMPLE_PETS + 1)
    }
  })

  it('gives up at once if it would have to wait for the next day', async () => {
    for (const { example, proxy, exitCode, stderr } of await runEach([reject(429, 40_000)])) {
      expect(exitCode, example.language).to.equal(1)
      expect(stderr, example.language).to.include('Gave up after attempt 1: 429')
      expect(proxy.arrivedAtMs, example.language).to.have.length(1)
    }
  })

  it('does not repeat a request that is not valid', async () => {
    for (const { example, proxy, exitCode, stdout } of await runEach([reject(400, 1)])) {
      expect({ exitCode, status: stdout.slice(0, 4) }, example.language).to.deep.equal({ exitCode: 0, status: '400 ' })
      expect(proxy.arrivedAtMs, example.language).to.have.length(1)
    }
  })
})

/** Runs every example at the same time, each against its own service. Requires Python 3, bash and curl. */
async function runEach(interferences: readonly Interference[], afterwards?: Interference): Promise<Outcome[]> {
  return Promise.all(EXAMPLES.map(async (example) => run(example, interferences, afterwards)))
}

async function run(example: Example, interferences: readonly Interference[], afterwards?: Interference): Promise<Outcome> {
  const api = await startApi()
  const proxy = new InterferingProxy(api.url, interferences, afterwards)
  const folder = mkdtempSync(join(tmpdir(), 'petstore-retry-'))
  try {
    const { secret } = await api.issueKey('free')
    const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], API_KEY: secret, PETSTORE_URL: await proxy.listen() }
    writeFileSync(join(folder, example.file), exampleIn(example.language).code)
    const ended = await new Promise<Pick<Outcome, 'exitCode' | 'stdout' | 'stderr'>>((resolve) => {
      execFile(example.program, [example.file], { cwd: folder, env, timeout: 15_000 }, (error, stdout, stderr) =>
        resolve({ exitCode: error?.code ?? 0, stdout, stderr }),
      )
    })
    const { json } = await api.send('/v1/pets?limit=100', { key: secret })
    return { example, ...ended, proxy, pets: (json as unknown[]).length }
  } finally {
    proxy.close()
    rmSync(folder, { recursive: true })
    await api.stop()
  }
}

function exampleIn(language: string): { code: string; output: string } {
  const [, code, output] =
    new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\`\\s+It prints:\\s+\`\`\`text\n([\\s\\S]*?)\`\`\``).exec(page) ?? []
  if (code === undefined || output === undefined) throw new Error(`No example in ${language} with its output`)
  return { code, output }
}
