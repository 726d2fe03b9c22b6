import { EventEmitter } from 'node:events'
import type { Random } from './random.js'
import type { ScriptModel } from './script-model.js'
import type { Command, SimulatedRedis } from './simulated-redis.js'

/** As in `makeRedisClient`. */
const CONNECT_TIMEOUT_MS = 1_000
const RECONNECT_MS = 200

interface InFlight {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** The parts of an ioredis client that the service uses, on a network that delays and loses messages. */
export class SimulatedClient extends EventEmitter {
  status: 'wait' | 'connecting' | 'connect' | 'ready' | 'reconnecting' | 'end' = 'wait'
  /** The highest delay of a message in each direction. */
  maxDelayMs = 1
  /** Nothing is delivered in either direction. The connection stays open, as with a firewall that drops packets. */
  isPartitioned = false
  readonly #inFlight = new Set<InFlight>()
  /** Messages of a connection arrive in the order in which they were sent. */
  #arrivals = { request: 0, reply: 0 }
  #attempts = 0

  constructor(
    private readonly server: SimulatedRedis,
    private readonly random: Random,
  ) {
    super()
    server.clients.add(this)
  }

  /** Both scripts are methods of this class. */
  defineCommand(): void {}

  petstoreQuota(...args: Parameters<ScriptModel['quota']>): Promise<unknown> {
    return this.#send((script) => script.quota(...args))
  }

  petstoreHeartbeat(keyCount: number, marker: string, ...rest: string[]): Promise<unknown> {
    return this.#send((script) => script.heartbeat(keyCount, marker, ...rest))
  }

  zrem(_key: string, replicaId: string): Promise<unknown> {
    return this.#send((script) => Number(script.data.replicas.delete(replicaId)))
  }

  async connect(): Promise<void> {
    this.status = 'connecting'
    this.#attempts += 1
    const attempt = this.#attempts
    const hasNoResponse = this.isPartitioned || this.server.status === 'frozen'
    await new Promise((resolve) => setTimeout(resolve, hasNoResponse ? CONNECT_TIMEOUT_MS : this.#delayMs()))
    if (this.status !== 'connecting' || attempt !== this.#attempts) throw new Error('Connection is closed.')
    if (hasNoResponse || this.isPartitioned || this.server.status !== 'up') {
      this.#close(true)
      throw new Error(hasNoResponse ? 'connect ETIMEDOUT' : 'connect ECONNREFUSED')
    }
    this.status = 'ready'
    this.emit('ready')
  }

  disconnect(reconnect = false): void {
    if (this.status !== 'end') this.#close(reconnect)
  }

  loseConnection(): void {
    if (this.status === 'ready' || this.status === 'connecting') this.#close(true)
  }

  /** The process of the replica ends. Nothing is reported to it any more. */
  kill(): void {
    this.#inFlight.clear()
    this.removeAllListeners()
    this.status = 'end'
    this.server.clients.delete(this)
  }

  #close(reconnect: boolean): void {
    this.status = reconnect ? 'reconnecting' : 'end'
    if (!reconnect) this.server.clients.delete(this)
    const inFlight = [...this.#inFlight]
    this.#inFlight.clear()
    for (const { reject } of inFlight) reject(new Error('Connection is closed.'))
    this.emit('close')
    if (reconnect) setTimeout(() => this.#reconnect(), RECONNECT_MS)
  }

  #reconnect(): void {
    if (this.status !== 'reconnecting') return
    this.connect().catch((error: unknown) => {
      if (this.status !== 'end') this.emit('error', error)
    })
  }

  #send(command: Command): Promise<unknown> {
    if (this.status !== 'ready') return Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"))
    return new Promise((resolve, reject) => {
      const inFlight = { resolve, reject }
      this.#inFlight.add(inFlight)
      // A request that has reached the network arrives although the client closes the connection, or is lost.
      const isLostWithConnection = this.random.isLucky(0.5)
      const { runId } = this.server.script
      this.#deliver('request', () => {
        if (this.server.script.runId !== runId || (isLostWithConnection && !this.#inFlight.has(inFlight))) return
        this.server.receive({ command, reply: (result) => this.#deliver('reply', () => this.#settle(inFlight, result)) })
      })
    })
  }

  #settle(inFlight: InFlight, result: { value: unknown } | { error: Error }): void {
    if (!this.#inFlight.delete(inFlight)) return
    if ('error' in result) inFlight.reject(result.error)
    else inFlight.resolve(result.value)
  }

  #deliver(direction: 'request' | 'reply', arrive: () => void): void {
    if (this.isPartitioned) return
    const nowMs = performance.now()
    this.#arrivals[direction] = Math.max(this.#arrivals[direction], nowMs + this.#delayMs())
    setTimeout(() => {
      if (!this.isPartitioned) arrive()
    }, this.#arrivals[direction] - nowMs)
  }

  #delayMs(): number {
    return this.random.integer(0, this.maxDelayMs)
  }
}
