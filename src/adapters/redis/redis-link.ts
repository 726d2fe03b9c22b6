import type { RedisClient } from './redis-client.js'

/** The longest that a request waits for Redis. */
const ANSWER_TIMEOUT_MS = 90
/** How often Redis is asked whether it is back. */
const PROBE_MS = 250
/** A connection on which a probe was not answered for so long is given up for a new one. */
const PROBE_TIMEOUT_MS = 1_000

/** Redis did not answer, or not in time. */
export class RedisAway extends Error {
  /** Whether the command may have been executed all the same, now or later. */
  readonly maybeExecuted: boolean

  constructor(message: string, { maybeExecuted, cause }: { maybeExecuted: boolean; cause?: unknown }) {
    super(message, { cause })
    this.maybeExecuted = maybeExecuted
  }
}

export interface RedisLinkOptions {
  /** A command that fails exactly when decisions would. */
  readonly probe: (client: RedisClient) => Promise<unknown>
}

type Listener = (isUp: boolean, cause?: unknown) => void

/**
 * A connection with a breaker: the first command without a timely answer opens it, and from then on nobody waits. A probe of its own
 * closes it again.
 */
export class RedisLink {
  #isUp = false
  #isClosed = false
  #connecting: Promise<void> | undefined
  readonly #listeners: Listener[] = []

  constructor(
    private readonly client: RedisClient,
    private readonly options: RedisLinkOptions,
  ) {
    // What went wrong is told to whoever asks; without a listener ioredis would write it to the console.
    client.on('error', () => {})
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
    if (!this.#isUp) this.#tell(false, new Error('Redis did not answer at the start'))
  }

  /** Sends one command. Throws `RedisAway` within 100 ms, at once while the breaker is open. */
  async call<Reply>(command: (client: RedisClient) => Promise<Reply>): Promise<Reply> {
    if (!this.#isUp) throw new RedisAway('Redis is away', { maybeExecuted: false })
    try {
      return await withinMs(ANSWER_TIMEOUT_MS, command(this.client))
    } catch (error) {
      this.#goDown(error)
      throw new RedisAway('Redis did not answer', { maybeExecuted: maybeExecuted(error), cause: error })
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.client.disconnect()
    await this.#connecting
  }

  #goDown(cause: unknown): void {
    if (!this.#isUp || this.#isClosed) return
    this.#isUp = false
    this.#connecting = this.#probeUntilUp()
    this.#tell(false, cause)
  }

  #tell(isUp: boolean, cause?: unknown): void {
    for (const listener of this.#listeners) listener(isUp, cause)
  }

  async #probeUntilUp(): Promise<void> {
    while (!this.#isClosed) {
      try {
        if (this.client.status === 'wait' || this.client.status === 'end') await withinMs(PROBE_TIMEOUT_MS, this.client.connect())
        const sentMs = performance.now()
        await withinMs(PROBE_TIMEOUT_MS, this.options.probe(this.client))
        // What answers later than decisions may wait would open the breaker again with the next one.
        if (performance.now() - sentMs > ANSWER_TIMEOUT_MS) throw new Error('Redis answers too slowly')
        this.#isUp = true
        this.#tell(true)
        return
      } catch (error) {
        // A frozen server and a half-open connection look alike. What was sent on the connection is given up with it.
        if (error instanceof NoAnswer && !this.#isClosed) this.client.disconnect(true)
        await sleep(PROBE_MS)
      }
    }
  }
}

class NoAnswer extends Error {}

/** A process that was busy itself first reads the answers that have arrived meanwhile. */
async function withinMs<Value>(timeoutMs: number, answer: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => setImmediate(() => reject(new NoAnswer(`No answer within ${timeoutMs} ms`))), timeoutMs)
  })
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer))
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Redis refuses before it executes, and what was never sent cannot be executed; after that all is open. */
function maybeExecuted(error: unknown): boolean {
  if (error instanceof NoAnswer) return true
  if (!(error instanceof Error)) return true
  return error.name !== 'ReplyError' && !error.message.includes('enableOfflineQueue')
}
