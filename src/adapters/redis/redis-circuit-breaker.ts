import { once, setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HeartbeatReply } from './heartbeat.js'
import type { RedisClient } from './redis-client.js'
import { isConsequence, isServerState, maybeExecuted, NO_CONNECTION, NO_RESPONSE, toReason } from './redis-errors.js'

/** The maximum time that a call waits for Redis. A decision makes one call, or two if it repairs a corrupt hash. */
const RESPONSE_TIMEOUT_MS = 90
/** The time between two probes while the breaker is open. */
const PROBE_MS = 250
/** If a probe gets no response within this time, its connection is replaced. */
const PROBE_TIMEOUT_MS = 1_000

/** Redis did not respond in time, or responded with an error. */
export class RedisUnavailable extends Error {
  /** Whether Redis may have executed the command or may still execute it. */
  readonly maybeExecuted: boolean

  constructor(message: string, { maybeExecuted: mayHaveRun, cause }: { maybeExecuted: boolean; cause?: unknown }) {
    super(message, { cause })
    this.maybeExecuted = mayHaveRun
  }
}

export interface RedisCircuitBreakerOptions {
  readonly shardCount: number
  /** A command that fails whenever decisions for the shard fail. */
  readonly probe: (shard: number) => Promise<HeartbeatReply>
  /** Replaces the connection to the node of a shard. */
  readonly replaceConnection: (shard: number) => void
}

/** `reason`: why Redis is unavailable. Never contains the failed command, which may hold a password. */
type ChangeListener = (isUp: boolean, reason?: string) => void
/** Called before the breaker closes for a shard. If it throws, the breaker stays open until the next probe. */
type Gate = (shard: number, reply: HeartbeatReply) => Promise<void>

/**
 * Opens for a shard when a command gets no response in time, and for all shards when the connection is closed. While it is open, commands fail
 * at once. Closes when a probe of the shard succeeds and no gate throws.
 */
export class RedisCircuitBreaker {
  /** All shards at first. */
  readonly #openShards: Set<number>
  readonly #recoveries = new Map<number, Promise<void>>()
  readonly #shutDown = new AbortController()
  readonly #changeListeners: ChangeListener[] = []
  readonly #closeListeners: (() => void)[] = []
  readonly #rejectionListeners: ((error: unknown) => void)[] = []
  readonly #gates: Gate[] = []
  /** The state that was last reported to the listeners. */
  #reported: boolean | undefined
  #lastReason = NO_RESPONSE
  #connecting: Promise<void> | undefined

  constructor(
    private readonly client: RedisClient,
    private readonly options: RedisCircuitBreakerOptions,
  ) {
    this.#openShards = new Set(Array.from({ length: options.shardCount }, (_, shard) => shard))
    // Each open shard listens while it pauses.
    setMaxListeners(options.shardCount, this.#shutDown.signal)
    // Without a listener, ioredis writes errors to the console.
    for (const event of ['error', 'nodeError', 'sentinelError']) client.on(event, (error: Error) => this.#note(error))
    client.on('close', () => {
      for (let shard = 0; shard < options.shardCount; shard++) this.open(new Error('The connection to Redis was closed'), shard)
    })
  }

  /** Whether the breaker is closed for all shards. */
  get isUp(): boolean {
    return this.#openShards.size === 0
  }

  /** Whether the breaker is closed for a shard, which means that commands are sent. */
  isClosed(shard: number): boolean {
    return !this.#openShards.has(shard)
  }

  /** Calls the listener when the breaker opens for the first of all shards, and when it has closed for all of them. */
  onChange(listener: ChangeListener): void {
    this.#changeListeners.push(listener)
  }

  /** Calls the listener after the breaker has closed for a shard. */
  onClose(listener: () => void): void {
    this.#closeListeners.push(listener)
  }

  /** Calls the listener if Redis rejects a command for a reason that does not concern other commands. */
  onRejection(listener: (error: unknown) => void): void {
    this.#rejectionListeners.push(listener)
  }

  addGate(gate: Gate): void {
    this.#gates.push(gate)
  }

  /** Resolves when Redis responds, or after `timeoutMs`. Keeps trying after that. */
  async connect(timeoutMs: number): Promise<void> {
    for (const shard of this.#openShards) this.#startRecovery(shard)
    try {
      await withinMs(timeoutMs, Promise.all(this.#recoveries.values()))
    } catch (error) {
      if (!(error instanceof ResponseTimeout)) throw error
      this.#report(false)
    }
  }

  /**
   * Sends one command. Throws `RedisUnavailable` within 100 ms, or at once while the breaker is open for the shard. The breaker stays closed if
   * Redis rejects the command for a reason that does not concern other commands.
   */
  async call<Reply>(command: (client: RedisClient) => Promise<Reply>, shard: number): Promise<Reply> {
    if (!this.isClosed(shard)) throw new RedisUnavailable(this.#lastReason, { maybeExecuted: false })
    try {
      return await withinMs(RESPONSE_TIMEOUT_MS, command(this.client))
    } catch (error) {
      if (isServerState(error)) this.open(error, shard)
      else for (const listener of this.#rejectionListeners) listener(error)
      throw new RedisUnavailable(NO_RESPONSE, { maybeExecuted: maybeExecuted(error), cause: error })
    }
  }

  /** Sends one command although the breaker may be open. For probes and gates. Rejects if there is no response within one second. */
  callThrough<Reply>(command: (client: RedisClient) => Promise<Reply>): Promise<Reply> {
    return withinMs(PROBE_TIMEOUT_MS, command(this.client))
  }

  open(cause: unknown, shard: number): void {
    if (!this.isClosed(shard) || this.#isShutDown) return
    this.#openShards.add(shard)
    this.#lastReason = toReason(cause)
    this.#startRecovery(shard)
    this.#report(false)
  }

  /** Closes the connection. Listeners are no longer called. */
  async close(): Promise<void> {
    this.#shutDown.abort()
    this.client.disconnect()
    await Promise.all(this.#recoveries.values())
  }

  get #isShutDown(): boolean {
    return this.#shutDown.signal.aborted
  }

  /** A consequence of an earlier error does not replace the reason. */
  #note(cause: unknown): void {
    const reason = toReason(cause)
    if (!isConsequence(reason) || isConsequence(this.#lastReason)) this.#lastReason = reason
  }

  #report(isUp: boolean): void {
    if (this.#reported === isUp) return
    this.#reported = isUp
    for (const listener of this.#changeListeners) listener(isUp, isUp ? undefined : this.#lastReason)
  }

  #startRecovery(shard: number): void {
    if (!this.#recoveries.has(shard)) this.#recoveries.set(shard, this.#recover(shard))
  }

  async #recover(shard: number): Promise<void> {
    while (!this.#isShutDown && !(await this.#tryToClose(shard))) await this.#pause()
    if (this.#isShutDown) return
    this.#recoveries.delete(shard)
    this.#openShards.delete(shard)
    for (const listener of this.#closeListeners) listener()
    if (this.isUp) this.#report(true)
  }

  async #pause(): Promise<void> {
    try {
      await sleep(PROBE_MS, undefined, { signal: this.#shutDown.signal })
    } catch (error) {
      if (!this.#isShutDown) throw error
    }
  }

  async #tryToClose(shard: number): Promise<boolean> {
    try {
      await withinMs(PROBE_TIMEOUT_MS, this.#connect())
      const sentMs = performance.now()
      const reply = await this.callThrough(() => this.options.probe(shard))
      // Otherwise the next command would open the breaker again.
      if (performance.now() - sentMs > RESPONSE_TIMEOUT_MS) throw new Error('Redis responds too slowly')
      for (const gate of this.#gates) await gate(shard, reply)
      return true
    } catch (error) {
      this.#note(error)
      // A frozen server and a half-open connection look alike, so replace the connection.
      if (error instanceof ResponseTimeout && !this.#isShutDown) this.options.replaceConnection(shard)
      return false
    }
  }

  async #connect(): Promise<void> {
    const { status } = this.client
    if (status === 'wait' || status === 'end') this.#connecting ??= this.client.connect().finally(() => (this.#connecting = undefined))
    if (this.#connecting) await this.#connecting
    else if (status === 'connect') await once(this.client, 'ready')
    // A cluster client would queue each probe until there is a connection.
    else if (status !== 'ready') throw new Error(NO_CONNECTION)
  }
}

class ResponseTimeout extends Error {}

/** Throws `ResponseTimeout` after `timeoutMs`, but first reads responses that arrived while this process was busy. */
function withinMs<Value>(timeoutMs: number, response: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(new ResponseTimeout(`${NO_RESPONSE} within ${timeoutMs} ms`))
    const timer = setTimeout(() => setImmediate(fail), timeoutMs)
    response.finally(() => clearTimeout(timer)).then(resolve, reject)
  })
}
