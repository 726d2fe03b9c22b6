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
  /** The unparsed body. */
  readonly text: string
  /** The parsed body, undefined if it is not JSON. Numbers above 2^53 lose digits: compare `text` for those. */
  readonly json: any // oxlint-disable-line no-explicit-any
}

export interface Sent {
  readonly method?: string
  /** The secret of an API key. */
  readonly key?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** Strings and bytes are sent unchanged, everything else as JSON. */
  readonly body?: unknown
}

/** The service on a real socket, with a clock that the test moves. If it uses Redis, Redis uses the same clock. */
export interface TestApi {
  /** `http://127.0.0.1:…` */
  readonly url: string
  readonly clock: MovableClock
  readonly parts: ServiceParts
  /** Only in distributed mode. */
  readonly redis?: RedisConnection
  /** The parsed JSON lines of the log. */
  readonly logLines: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly server: Server
  send(path: string, sent?: Sent): Promise<TestResponse>
  issueKey(plan?: PlanName, details?: Partial<NewApiKey>): Promise<IssuedApiKey>
  stop(): Promise<void>
}

type Bound<Token> = Token extends ServiceIdentifier<infer Service> ? Service : never

/** Test doubles by the name of the token that each one is bound to. */
export type Doubles = { readonly [Name in keyof typeof TOKENS]?: Bound<(typeof TOKENS)[Name]> }

export interface TestApiOptions {
  readonly config?: Partial<Config>
  readonly clock?: MovableClock
  /** Replace the bindings of the container. */
  readonly doubles?: Doubles
}

export async function startApi({ config = {}, clock = new MovableClock(), doubles = {} }: TestApiOptions = {}): Promise<TestApi> {
  const logLines: Record<string, unknown>[] = []
  const logTo = { write: (line: string) => void logLines.push(JSON.parse(line)) }
  const container = await makeContainer({ ...readConfig({}), ...config }, logTo)
  const redis = config.distributed && new RedisConnection(config.distributed.redisUrl, { prefix: config.distributed.redisPrefix, clock })
  for (const [name, double] of Object.entries({ clock, ...(redis ? { redis } : {}), ...doubles })) {
    container.rebind<unknown>(TOKENS[name as keyof Doubles]).toConstantValue(double)
  }
  const parts = container.get(ServiceParts)
  await Promise.all(parts.backingServices.map((service) => service.prepare('serve')))
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
    issueKey: (plan = 'business', details = {}) => parts.apiKeyAdmin.issue({ owner: 'Acme', plan, ...details }, 'tests'),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await Promise.all(parts.backingServices.map((service) => service.close()))
    },
  }
}

/** Starts the service for one test, with a key that no test exhausts, and stops it even if `use` throws. */
export async function withApi(options: TestApiOptions, use: (api: TestApi, key: string) => Promise<void>): Promise<void> {
  const api = await startApi(options)
  try {
    await use(api, await issueAmpleKey(api))
  } finally {
    await api.stop()
  }
}

/** The service that a suite uses. */
export interface SuiteApi extends TestApi {
  /** The secret of a key that no test exhausts. */
  readonly key: string
  /** Like `send`, with `key` unless the request has its own key. */
  call(path: string, sent?: Sent): Promise<TestResponse>
  /** Sends the body, as JSON, to `POST /v1/pets` with `key`. */
  postPet(body: unknown, headers?: Sent['headers']): Promise<TestResponse>
}

/** Starts the service once for all tests of the suite that calls this. The result can be used only in its hooks and tests. */
export function useApi(options: TestApiOptions = {}): SuiteApi {
  const { api, start, stop } = makeSuiteApi(() => options)
  before(start)
  after(stop)
  return api
}

/** Like `useApi`, but starts a new service, with new options, for each test of the suite. */
export function useApiPerTest(makeOptions: () => TestApiOptions = () => ({})): SuiteApi {
  const { api, start, stop } = makeSuiteApi(makeOptions)
  beforeEach(start)
  afterEach(stop)
  return api
}

function makeSuiteApi(makeOptions: () => TestApiOptions) {
  let running: SuiteApi | undefined
  const start = async () => {
    const api = await startApi(makeOptions())
    const key = await issueAmpleKey(api)
    const call: SuiteApi['call'] = (path, sent) => api.send(path, { key, ...sent })
    const postPet: SuiteApi['postPet'] = (body, headers) =>
      call('/v1/pets', { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
    running = { ...api, key, call, postPet }
  }
  const stop = async () => running?.stop()
  const api = new Proxy({} as SuiteApi, {
    get: (_, name) => Reflect.get(running ?? fail('The service is not running'), name) as unknown,
  })
  return { api, start, stop }
}

function fail(message: string): never {
  throw new Error(message)
}

/** Issues a key with more requests than any test sends, and returns its secret. */
export async function issueAmpleKey(api: TestApi): Promise<string> {
  const { secret } = await api.issueKey('enterprise', { limits: { minute: 100_000, day: 1_000_000 } })
  return secret
}

/** Sends one request on a new connection. Method and path are sent unchanged. */
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
