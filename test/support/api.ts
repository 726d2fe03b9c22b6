import type { IncomingHttpHeaders, Server } from 'node:http'
import { request } from 'node:http'
import type { ServiceIdentifier } from 'inversify'
import { listen, makeServer } from '../../src/adapters/http/server/server.js'
import type { Config } from '../../src/config.js'
import { readConfig } from '../../src/config.js'
import { RedisConnection } from '../../src/adapters/redis/redis-connection.js'
import type { PlanName } from '../../src/core/plan.js'
import type { IssuedApiKey, NewApiKey } from '../../src/core/use-cases/issue-api-key.js'
import { makeContainer } from '../../src/wiring/container.js'
import { ServiceParts } from '../../src/wiring/parts.js'
import { TOKENS } from '../../src/wiring/tokens.js'
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

/** The service on a real socket, with a clock that the test moves. A Redis that it uses decides by that clock, too. */
export interface TestApi {
  /** `http://127.0.0.1:…` */
  readonly url: string
  readonly clock: MovableClock
  readonly parts: ServiceParts
  /** The connection of the distributed mode. */
  readonly redis?: RedisConnection
  /** The parsed JSON lines of the log. */
  readonly logLines: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly server: Server
  send(path: string, sent?: Sent): Promise<TestResponse>
  issueKey(plan?: PlanName, details?: Partial<NewApiKey>): Promise<IssuedApiKey>
  stop(): Promise<void>
}

type Bound<Token> = Token extends ServiceIdentifier<infer Service> ? Service : never

/** Test doubles by the name of the token that they are bound to. */
export type Doubles = { readonly [Name in keyof typeof TOKENS]?: Bound<(typeof TOKENS)[Name]> }

export interface TestApiOptions {
  readonly config?: Partial<Config>
  readonly clock?: MovableClock
  /** Replace what the container binds. */
  readonly doubles?: Doubles
}

export async function startApi({ config = {}, clock = new MovableClock(), doubles = {} }: TestApiOptions = {}): Promise<TestApi> {
  const logLines: Record<string, unknown>[] = []
  const logTo = { write: (line: string) => void logLines.push(JSON.parse(line)) }
  const container = makeContainer({ ...readConfig({}), ...config }, logTo)
  const redis = config.distributed && new RedisConnection(config.distributed.redisUrl, { clock })
  for (const [name, double] of Object.entries({ clock, ...(redis ? { redis } : {}), ...doubles })) {
    container.rebind<unknown>(TOKENS[name as keyof Doubles]).toConstantValue(double)
  }
  const parts = container.get(ServiceParts)
  await Promise.all(parts.backingServices.map((service) => service.prepare()))
  const server = makeServer(parts.api, { log: parts.log })
  const url = await listen(server, '127.0.0.1', 0)
  return {
    url,
    clock,
    parts,
    ...(redis ? { redis } : {}),
    logLines,
    server,
    send: (path, sent) => send(url, path, sent),
    issueKey: (plan = 'business', details = {}) => parts.apiKeyAdmin.issue({ owner: 'Acme', plan, ...details }),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await Promise.all(parts.backingServices.map((service) => service.close()))
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
