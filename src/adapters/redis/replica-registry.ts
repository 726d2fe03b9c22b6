import { randomUUID } from 'node:crypto'
import type { HeartbeatReply } from './heartbeat.js'
import { REGISTRATION_TTL_MS } from './heartbeat.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'
import type { RedisConnection } from './redis-connection.js'

/** How often a replica renews its registration. */
const HEARTBEAT_MS = 500
/** After an outage, it takes this number of heartbeats until every registration has been renewed or has expired. */
const COUNTED_HEARTBEATS = REGISTRATION_TTL_MS / HEARTBEAT_MS

/** Registers this replica in Redis and counts the replicas that are registered. */
export class ReplicaRegistry {
  readonly #replicaId = randomUUID()
  /** The numbers of replicas in the last heartbeats. */
  #counts: readonly number[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #listeners: ((reply: HeartbeatReply) => void)[] = []

  /** `expectedReplicas`: the number of replicas while it is unknown, 1 or more. */
  constructor(
    private readonly redis: Pick<RedisConnection, 'breaker' | 'heartbeat'>,
    private readonly expectedReplicas: number,
  ) {}

  /** The highest number of replicas in the last 5 s in which Redis responded, 1 or more. */
  get count(): number {
    return this.#counts.length > 0 ? Math.max(...this.#counts) : this.expectedReplicas
  }

  /** Calls the listener with the reply to each heartbeat, which describes shard 0. */
  onHeartbeat(listener: (reply: HeartbeatReply) => void): void {
    this.#listeners.push(listener)
  }

  /** Registers this replica, and renews the registration until it is closed. Resolves after the first attempt. May be called repeatedly. */
  async start(): Promise<void> {
    if (this.#timer) return
    this.#timer = setInterval(() => void this.#beat(), HEARTBEAT_MS).unref()
    this.redis.breaker.onChange((isUp) => {
      if (isUp && this.#timer) void this.#beat()
    })
    await this.#beat()
  }

  /** Removes the registration. If Redis is unavailable, the registration expires. */
  async close(): Promise<void> {
    if (!this.#timer) return
    clearInterval(this.#timer)
    this.#timer = undefined
    await this.#call(() => this.redis.heartbeat.unregister(this.#replicaId))
  }

  async #beat(): Promise<void> {
    const reply = await this.#call(() => this.redis.heartbeat.register(this.#replicaId))
    if (!reply) return
    this.#counts = [...this.#counts, reply.replicas].slice(-COUNTED_HEARTBEATS)
    for (const listener of this.#listeners) listener(reply)
  }

  /** Returns `undefined` if Redis is unavailable. */
  async #call<Reply>(command: () => Promise<Reply>): Promise<Reply | undefined> {
    try {
      return await this.redis.breaker.call(command, 0)
    } catch (error) {
      if (error instanceof RedisUnavailable) return undefined
      throw error
    }
  }
}
