import { once } from 'node:events'
import type { RedisClient } from './redis-client.js'

/** The longest that a request waits for Redis. */
const RESPONSE_TIMEOUT_MS = 90
/** How often Redis is asked whether it is back. */
const PROBE_MS = 250
/** A connection on which a probe was not answered for so long is given up for a new one. */
const PROBE_TIMEOUT_MS = 1_000

const NO_RESPONSE_YET = 'no response yet'
const NO_CONNECTION = 'There is no connection to Redis'

/** Parts of messages that only report a consequence of an earlier error. */
const CONSEQUENCES = [
  NO_RESPONSE_YET,
  NO_CONNECTION,
  'No answer within',
  'Connection is closed',
  'All sentinels are unreachable',
  'Failed to refresh slots cache',
  'None of startup nodes is available',
  // A server that rejects a client certificate sends an alert and closes. A client that is still writing may only see the connection close.
  'ECONNRESET',
  'EPIPE',
]

/** Redis did not answer, or not in time. */
export class RedisUnavailable extends Error {
  /** Whether the command may have been executed all the same, now or later. */
  readonly maybeExecuted: boolean

  constructor(message: string, { maybeExecuted, cause }: { maybeExecuted: boolean; cause?: unknown }) {
    super(message, { cause })
    this.maybeExecuted = maybeExecuted
  }
}

export interface RedisCircuitBreakerOptions {
  /** A command that fails exactly when decisions would, in a Redis Cluster those of the slot of `hashTag`. */
  readonly probe: (client: RedisClient, hashTag: string | undefined) => Promise<unknown>
}

/** `reason`: what the client said last, without the command that it said it of, which may hold a password. */
type Listener = (isUp: boolean, reason?: string) => void

/**
 * A connection with a breaker: the first command without a timely answer opens it, and from then on nobody waits. A probe of its own
 * closes it again.
 */
export class RedisCircuitBreaker {
  #isUp = false
  #isClosed = false
  /** What the listeners were told last. */
  #told: boolean | undefined
  #lastReason = NO_RESPONSE_YET
  #connecting: Promise<void> | undefined
  readonly #listeners: Listener[] = []

  constructor(
    private readonly client: RedisClient,
    private readonly options: RedisCircuitBreakerOptions,
  ) {
    // Without a listener ioredis would write it to the console.
    for (const event of ['error', 'nodeError', 'sentinelError']) client.on(event, (error: Error) => this.#note(error))
    client.on('close', () => this.#goDown(new Error('The connection to Redis was closed')))
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** Is told of every change of state. */
  onChange(listener: Listener): void {
    this.#listeners.push(listener)
  }

  /** Resolves when Redis answers, or after `timeoutMs`, and goes on trying. */
  async connect(timeoutMs: number): Promise<void> {
    this.#connecting ??= this.#probeUntilUp()
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise((resolve) => (timer = setTimeout(resolve, timeoutMs)))
    // A command that has done its work would otherwise wait for the timer before it ends.
    await Promise.race([this.#connecting, timeout]).finally(() => clearTimeout(timer))
    if (!this.#isUp) this.#tell(false)
  }

  /**
   * Sends one command. Throws `RedisUnavailable` within 100 ms, at once while the breaker is open. `hashTag`: the hash tag of its key. Of a Redis
   * Cluster one node may be away, and it is that node that has to answer before the breaker closes.
   */
  async call<Reply>(command: (client: RedisClient) => Promise<Reply>, hashTag?: string): Promise<Reply> {
    if (!this.#isUp) throw new RedisUnavailable(`Redis is away (${this.#lastReason})`, { maybeExecuted: false })
    try {
      return await withinMs(RESPONSE_TIMEOUT_MS, command(this.client))
    } catch (error) {
      this.#goDown(error, hashTag)
      throw new RedisUnavailable('Redis did not answer', { maybeExecuted: maybeExecuted(error), cause: error })
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.client.disconnect()
    await this.#connecting
  }

  #goDown(cause: unknown, hashTag?: string): void {
    if (!this.#isUp || this.#isClosed) return
    this.#isUp = false
    this.#lastReason = toReason(cause)
    this.#connecting = this.#probeUntilUp(hashTag)
    this.#tell(false)
  }

  /** A consequence of an earlier error does not replace the reason. */
  #note(cause: unknown): void {
    const reason = toReason(cause)
    if (!isConsequence(reason) || isConsequence(this.#lastReason)) this.#lastReason = reason
  }

  #tell(isUp: boolean): void {
    if (this.#told === isUp) return
    this.#told = isUp
    for (const listener of this.#listeners) listener(isUp, isUp ? undefined : this.#lastReason)
  }

  /** A connection on which the client's own first words are never answered would stay what it is for ever. */
  async #untilConnected(): Promise<void> {
    const { status } = this.client
    if (status === 'wait' || status === 'end') await this.client.connect()
    else if (status === 'connect') await once(this.client, 'ready')
    // The client of a cluster would keep what it is asked until there is one, probe after probe.
    else if (status !== 'ready') throw new Error(NO_CONNECTION)
  }

  async #probeUntilUp(hashTag?: string): Promise<void> {
    while (!this.#isClosed && !(await this.#probe(hashTag))) await sleep(PROBE_MS)
    if (this.#isClosed) return
    this.#isUp = true
    this.#tell(true)
  }

  async #probe(hashTag?: string): Promise<boolean> {
    try {
      await withinMs(PROBE_TIMEOUT_MS, this.#untilConnected())
      const sentMs = performance.now()
      await withinMs(PROBE_TIMEOUT_MS, this.options.probe(this.client, hashTag))
      // What answers later than decisions may wait would open the breaker again with the next one.
      if (performance.now() - sentMs > RESPONSE_TIMEOUT_MS) throw new Error('Redis answers too slowly')
      return true
    } catch (error) {
      this.#note(error)
      // A frozen server and a half-open connection look alike. What was sent on the connection is given up with it.
      if (error instanceof ResponseTimeout && !this.#isClosed) this.client.disconnect(true)
      return false
    }
  }
}

class ResponseTimeout extends Error {}

/** A process that was busy itself first reads the answers that have arrived meanwhile. */
async function withinMs<Value>(timeoutMs: number, answer: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => setImmediate(() => reject(new ResponseTimeout(`No answer within ${timeoutMs} ms`))), timeoutMs)
  })
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer))
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Redis refuses before it executes, and what was never sent cannot be executed; after that all is open. */
function maybeExecuted(error: unknown): boolean {
  if (error instanceof ResponseTimeout) return true
  if (!(error instanceof Error)) return true
  return error.name !== 'ReplyError' && !error.message.includes('enableOfflineQueue')
}

/** OpenSSL's message contains memory addresses and source lines in addition to the reason. */
function toReason(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  const { code, reason } = cause as NodeJS.ErrnoException & { reason?: string }
  return code?.startsWith('ERR_SSL_') && reason ? reason : cause.message
}

function isConsequence(reason: string): boolean {
  return CONSEQUENCES.some((consequence) => reason.includes(consequence))
}
