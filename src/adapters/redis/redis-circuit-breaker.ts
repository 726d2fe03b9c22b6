import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisClient } from './redis-client.js'

/** The maximum time that a request waits for Redis. */
const RESPONSE_TIMEOUT_MS = 90
/** The time between two probes while the breaker is open. */
const PROBE_MS = 250
/** If a probe gets no response within this time, its connection is replaced. */
const PROBE_TIMEOUT_MS = 1_000

const NO_CONNECTION = 'There is no connection to Redis'
const NO_RESPONSE = 'Redis did not respond'

/** An error whose message contains one of these texts is only a consequence of an earlier error. */
const CONSEQUENCES = [
  NO_CONNECTION,
  NO_RESPONSE,
  'Connection is closed',
  'All sentinels are unreachable',
  'Failed to refresh slots cache',
  'None of startup nodes is available',
  // A server that rejects a client certificate sends an alert and closes. A client that is still writing may only see the connection close.
  'ECONNRESET',
  'EPIPE',
]

/** Redis did not respond in time, or responded with an error. */
export class RedisUnavailable extends Error {
  /** Whether Redis may have executed the command or may still execute it. */
  readonly maybeExecuted: boolean

  constructor(message: string, { maybeExecuted, cause }: { maybeExecuted: boolean; cause?: unknown }) {
    super(message, { cause })
    this.maybeExecuted = maybeExecuted
  }
}

export interface RedisCircuitBreakerOptions {
  /** A command that fails whenever decisions fail. In a Redis Cluster, it must use the slot of `hashTag`. */
  readonly probe: (client: RedisClient, hashTag: string | undefined) => Promise<unknown>
}

/** `reason`: why Redis is unavailable. Never contains the failed command, which may hold a password. */
type Listener = (isUp: boolean, reason?: string) => void

/** Opens when a command gets no response in time. While it is open, commands fail at once. Closes when a probe succeeds. */
export class RedisCircuitBreaker {
  #isUp = false
  #isShutDown = false
  /** The state that was last reported to the listeners. */
  #reported: boolean | undefined
  #lastReason = NO_RESPONSE
  #connecting: Promise<void> | undefined
  readonly #listeners: Listener[] = []

  constructor(
    private readonly client: RedisClient,
    private readonly options: RedisCircuitBreakerOptions,
  ) {
    // Without a listener, ioredis writes errors to the console.
    for (const event of ['error', 'nodeError', 'sentinelError']) client.on(event, (error: Error) => this.#note(error))
    client.on('close', () => this.#open(new Error('The connection to Redis was closed')))
  }

  /** Whether the breaker is closed, which means that commands are sent. */
  get isUp(): boolean {
    return this.#isUp
  }

  /** Calls the listener after each state change. */
  onChange(listener: Listener): void {
    this.#listeners.push(listener)
  }

  /** Resolves when Redis responds, or after `timeoutMs`. Keeps trying after that. */
  async connect(timeoutMs: number): Promise<void> {
    this.#connecting ??= this.#probeUntilUp()
    try {
      await withinMs(timeoutMs, this.#connecting)
    } catch (error) {
      if (!(error instanceof ResponseTimeout)) throw error
      this.#report(false)
    }
  }

  /**
   * Sends one command. Throws `RedisUnavailable` within 100 ms, or at once while the breaker is open. `hashTag` is the hash tag of the
   * command's key: if one node of a Redis Cluster fails, the breaker stays open until that node responds.
   */
  async call<Reply>(command: (client: RedisClient) => Promise<Reply>, hashTag?: string): Promise<Reply> {
    if (!this.#isUp) throw new RedisUnavailable(this.#lastReason, { maybeExecuted: false })
    try {
      return await withinMs(RESPONSE_TIMEOUT_MS, command(this.client))
    } catch (error) {
      this.#open(error, hashTag)
      throw new RedisUnavailable(NO_RESPONSE, { maybeExecuted: maybeExecuted(error), cause: error })
    }
  }

  /** Closes the connection. Listeners are no longer called. */
  async close(): Promise<void> {
    this.#isShutDown = true
    this.client.disconnect()
    await this.#connecting
  }

  #open(cause: unknown, hashTag?: string): void {
    if (!this.#isUp || this.#isShutDown) return
    this.#isUp = false
    this.#lastReason = toReason(cause)
    this.#connecting = this.#probeUntilUp(hashTag)
    this.#report(false)
  }

  /** A consequence of an earlier error does not replace the reason. */
  #note(cause: unknown): void {
    const reason = toReason(cause)
    if (!isConsequence(reason) || isConsequence(this.#lastReason)) this.#lastReason = reason
  }

  #report(isUp: boolean): void {
    if (this.#reported === isUp) return
    this.#reported = isUp
    for (const listener of this.#listeners) listener(isUp, isUp ? undefined : this.#lastReason)
  }

  async #connect(): Promise<void> {
    const { status } = this.client
    if (status === 'wait' || status === 'end') await this.client.connect()
    else if (status === 'connect') await once(this.client, 'ready')
    // A cluster client would queue each probe until there is a connection.
    else if (status !== 'ready') throw new Error(NO_CONNECTION)
  }

  async #probeUntilUp(hashTag?: string): Promise<void> {
    while (!this.#isShutDown && !(await this.#probe(hashTag))) await sleep(PROBE_MS)
    if (this.#isShutDown) return
    this.#isUp = true
    this.#report(true)
  }

  async #probe(hashTag?: string): Promise<boolean> {
    try {
      await withinMs(PROBE_TIMEOUT_MS, this.#connect())
      const sentMs = performance.now()
      await withinMs(PROBE_TIMEOUT_MS, this.options.probe(this.client, hashTag))
      // Otherwise the next command would open the breaker again.
      if (performance.now() - sentMs > RESPONSE_TIMEOUT_MS) throw new Error('Redis responds too slowly')
      return true
    } catch (error) {
      this.#note(error)
      // A frozen server and a half-open connection look alike, so replace the connection.
      if (error instanceof ResponseTimeout && !this.#isShutDown) this.client.disconnect(true)
      return false
    }
  }
}

class ResponseTimeout extends Error {}

/** Throws `ResponseTimeout` after `timeoutMs`, but first reads responses that arrived while this process was busy. */
async function withinMs<Value>(timeoutMs: number, response: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => setImmediate(() => reject(new ResponseTimeout(`${NO_RESPONSE} within ${timeoutMs} ms`))), timeoutMs)
  })
  return Promise.race([response, timeout]).finally(() => clearTimeout(timer))
}

/** If Redis replies with an error, or the client rejects the command before it sends it, the command was not executed. */
function maybeExecuted(error: unknown): boolean {
  const isReply = error instanceof Error && error.name === 'ReplyError'
  const isUnsent = error instanceof Error && error.message.includes('enableOfflineQueue')
  return !isReply && !isUnsent
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
