import type { IncomingHttpHeaders, RequestListener, Server } from 'node:http'
import { request } from 'node:http'
import type { Container } from 'inversify'
import type { Logger } from 'pino'
import { listen, makeServer } from '../../src/adapters/http/server/server.js'
import type { Config } from '../../src/config.js'
import { readConfig } from '../../src/config.js'
import { RedisConnection } from '../../src/adapters/redis/redis-connection.js'
import type { Storage } from '../../src/container.js'
import { makeContainer, TOKENS } from '../../src/container.js'
import type { PlanName } from '../../src/core/plan.js'
import type { IssueApiKey, IssuedApiKey, NewApiKey } from '../../src/core/use-cases/issue-api-key.js'
import { MovableClock } from './movable-clock.js'

export interface TestResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The body as it came, byte for byte. */
  readonly text: string
  /** The body read as JSON (numbers above 2^53 lose digits: compare `text` for those); undefined where there is none. */
  readonly json: any // oxlint-disable-line no-explicit-any
}

export interface Sent {
  readonly method?: string
  /** The secret of the key to send. */
  readonly key?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** Sent as it is; anything but a string or bytes is sent as JSON. */
  readonly body?: unknown
}

/** The service on a real socket, with a clock that the test moves; a Redis that it is given decides by that clock, too. */
export interface TestApi {
  /** `http://127.0.0.1:…` */
  readonly url: string
  readonly clock: MovableClock
  readonly container: Container
  /** What was logged, a parsed JSON line each. */
  readonly logLines: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly server: Server
  send(path: string, sent?: Sent): Promise<TestResponse>
  issueKey(plan?: PlanName, details?: Partial<NewApiKey>): Promise<IssuedApiKey>
  stop(): Promise<void>
}

export interface TestApiOptions {
  readonly config?: Partial<Config>
  /** Puts doubles in the place of what the container binds, before anything is made. */
  readonly rebind?: (container: Container) => void
}

export async function startApi({ config = {}, rebind }: TestApiOptions = {}): Promise<TestApi> {
  const clock = new MovableClock()
  const logLines: Record<string, unknown>[] = []
  const logTo = { write: (line: string) => void logLines.push(JSON.parse(line)) }
  const container = makeContainer({ ...readConfig({}), ...config }, logTo)
  container.rebind(TOKENS.clock).toConstantValue(clock)
  const { distributed } = config
  if (distributed) container.rebind(TOKENS.redis).toConstantValue(new RedisConnection(distributed.redisUrl, { clock }))
  rebind?.(container)

  const storage = container.get<Storage>(TOKENS.storage)
  await storage.prepare()
  const server = makeServer(container.get<RequestListener>(TOKENS.api), { log: container.get<Logger>(TOKENS.log) })
  const url = await listen(server, '127.0.0.1', 0)
  return {
    url,
    clock,
    container,
    logLines,
    server,
    send: (path, sent) => send(url, path, sent),
    issueKey: (plan = 'business', details = {}) => container.get<IssueApiKey>(TOKENS.issueApiKey)({ owner: 'Acme', plan, ...details }),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await storage.close()
    },
  }
}

/** One request on a connection of its own, with any method and any path, sent to the letter. */
export async function send(url: string, path: string, { method = 'GET', key, headers = {}, body }: Sent = {}): Promise<TestResponse> {
  const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
  const bytes = isRaw ? body : JSON.stringify(body)
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const outgoing = request({
      hostname,
      port,
      path,
      method,
      agent: false,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(isRaw ? {} : { 'content-type': 'application/json' }),
        ...(bytes === undefined ? {} : { 'content-length': String(Buffer.byteLength(bytes)) }),
        ...(headers as Record<string, string | string[]>),
      },
    })
    outgoing.on('error', reject)
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const isJson = incoming.headers['content-type'] === 'application/json'
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, json: isJson && text ? JSON.parse(text) : undefined })
      })
    })
    outgoing.end(bytes)
  })
}
