import { randomUUID } from 'node:crypto'
import type { HeartbeatReply } from './heartbeat.js'
import { REGISTRATION_TTL_MS } from './heartbeat.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'
import type { RedisConnection } from './redis-connection.js'

/** How often a replica renews its registration. */
const HEARTBEAT_MS = 500
/**
 * After an outage or a loss of data, registrations are renewed one by one, so the number of replicas does not decrease during this number of
 * heartbeats.
 */
const HELD_HEARTBEATS = REGISTRATION_TTL_MS / HEARTBEAT_MS

/** Registers this replica in Redis and counts the replicas that are registered. */
export class ReplicaRegistry {
  readonly #replicaId = randomUUID()
  #lastCount: number | undefined
  /** The number of heartbeats in which the count must not decrease. */
  #heldHeartbeats = 0
  #timer: NodeJS.Timeout | undefined
  readonly #listeners: ((reply: HeartbeatReply) => void)[] = []

  /** `expectedReplicas`: the number of replicas while it is unknown, 1 or more. */
  constructor(
    private readonly redis: Pick<RedisConnection, 'breaker' | 'heartbeat'>,
    private readonly expectedReplicas: number,
  ) {}

  /** The number of replicas when Redis last responded, 1 or more. */
  get count(): number {
    return this.#lastCount ?? this.expectedReplicas
  }

  /** Calls the listener with the reply to each heartbeat, which describes shard 0. */
  onHeartbeat(listener: (reply: HeartbeatReply) => void): void {
    this.#listeners.push(listener)
  }

  /** Registers this replica, and renews the registration until `close`. Resolves after the first attempt. May be called repeatedly. */
  async start(): Promise<void> {
    if (this.#timer) return
    this.#timer = setInterval(() => void this.#beat(), HEARTBEAT_MS).unref()
    this.redis.breaker.onChange((isUp) => {
      if (!isUp || !this.#timer) return
      this.#heldHeartbeats = HELD_HEARTBEATS
      void this.#beat()
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
    for (const listener of this.#listeners) listener(reply)
    // A listener may have found that Redis has lost data, including registrations.
    if (!this.redis.breaker.isClosed(0)) return
    this.#lastCount = this.#heldHeartbeats > 0 ? Math.max(reply.replicas, this.#lastCount ?? 0) : reply.replicas
    this.#heldHeartbeats -= 1
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
