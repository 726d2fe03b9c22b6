import type { IncomingHttpHeaders } from 'node:http'
import { Agent, request } from 'node:http'

/** One request that the load generator sent, with its response. */
export interface Hit {
  readonly url: string
  /** Absent if the connection failed. */
  readonly status?: number
  readonly headers: IncomingHttpHeaders
  /** Empty if the connection failed. */
  readonly body: string
  /** Both on the clock of `performance.now()`. */
  readonly startMs: number
  readonly endMs: number
}

export interface LoadGeneratorOptions {
  /** Returns the secret for the next request. */
  readonly key: () => string
  readonly clientsEach: number
  /** Total number of requests of all clients. By default, clients send requests until `stop`. */
  readonly atMost?: number
  /** The minimum time between the starts of two requests of a client. By default, a client does not pause. */
  readonly everyMs?: number
  /** Returns additional headers for the next request. */
  readonly headers?: () => Readonly<Record<string, string>>
}

/** Sends requests from several clients to each replica. Each client has its own persistent connection. */
export class LoadGenerator {
  readonly hits: Hit[] = []
  readonly #urls = new Set<string>()
  readonly #clients: Promise<void>[] = []
  #left: number
  #isStopped = false

  constructor(
    urls: readonly string[],
    private readonly options: LoadGeneratorOptions,
  ) {
    this.#left = options.atMost ?? Number.POSITIVE_INFINITY
    for (const url of urls) this.add(url)
  }

  /** Resolves when every client has the response to its last request. */
  get done(): Promise<void> {
    return Promise.all(this.#clients).then(() => undefined)
  }

  /** Sends requests to one more replica. */
  add(url: string): void {
    this.#urls.add(url)
    this.#clients.push(...Array.from({ length: this.options.clientsEach }, () => this.#client(url)))
  }

  /** Sends no further requests to this replica. */
  remove(url: string): void {
    this.#urls.delete(url)
  }

  /** Counts the responses with the status so far. */
  count(status: number): number {
    return this.hits.filter((hit) => hit.status === status).length
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.done
  }

  async #client(url: string): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (this.#left > 0 && !this.#isStopped && this.#urls.has(url)) {
      this.#left -= 1
      const startMs = performance.now()
      const headers = { ...this.options.headers?.(), authorization: `Bearer ${this.options.key()}` }
      const response = await sendGet(url, agent, headers).catch(() => ({ headers: {}, body: '' }))
      const endMs = performance.now()
      this.hits.push({ url, ...response, startMs, endMs })
      const pauseMs = (this.options.everyMs ?? 0) - (endMs - startMs)
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
    agent.destroy()
  }
}

async function sendGet(url: string, agent: Agent, headers: Record<string, string>): Promise<Pick<Hit, 'status' | 'headers' | 'body'>> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${url}/v1/store/orders`, { agent, headers })
    outgoing.on('error', reject)
    outgoing.on('response', (incoming) => {
      const { statusCode: status = 0, headers: received } = incoming
      let body = ''
      incoming.setEncoding('utf8').on('data', (text: string) => (body += text))
      incoming.on('error', reject).on('end', () => resolve({ status, headers: received, body }))
    })
    outgoing.end()
  })
}

/** Describes the response times for people. No test depends on them. */
export function describeLatencies(hits: readonly Pick<Hit, 'startMs' | 'endMs'>[]): string {
  const sorted = hits.map(({ startMs, endMs }) => endMs - startMs).toSorted((a, b) => a - b)
  const at = (part: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(1)
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`
}

/** Counts requests by status, which is 0 if the connection failed. */
export function countByStatus(hits: readonly Hit[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status = 0 } of hits) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
