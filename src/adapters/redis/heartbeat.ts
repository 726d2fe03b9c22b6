import { RESTORING_SUFFIX } from './quota-script.js'
import type { RedisClient } from './redis-client.js'
import { defineScript } from './redis-client.js'
import type { RedisKeys } from './redis-keys.js'

/** A registration that is not renewed expires after this time. */
export const REGISTRATION_TTL_MS = 5_000

/** What a replica learns about a shard. */
export interface HeartbeatReply {
  /** Identifies the data of the shard. Another epoch means that data may have been lost. */
  readonly epoch: string
  /** Milliseconds since the epoch began, by the clock of Redis. */
  readonly epochAgeMs: number
  /** Whether a replica restores what it knows of the shard, or did so recently. */
  readonly isRestoring: boolean
  /** Number of registered replicas, or 0 if the heartbeat did not register one. */
  readonly replicas: number
}

/**
 * Begins a new epoch if the marker is missing (the server was emptied) or names another server process (a restart may have lost data, and a
 * promoted replica may lack the last writes). Then renews the registration of a replica.
 *
 * KEYS[1] is the epoch marker. With a replica: KEYS[2] is the sorted set of replicas, ARGV[1] the ID of the replica, and ARGV[2] the time to
 * live of registrations. The marker is written each time, so that the script fails whenever decisions fail.
 */
const HEARTBEAT_SCRIPT = `
local marker, replicas = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
-- An access control list may not allow INFO. A restart then begins no epoch.
local info = redis.pcall('INFO', 'server')
local runId = type(info) == 'string' and info:match('run_id:(%w+)') or 'unknown'

local epoch = redis.call('GET', marker)
local epochRunId, beganMs = (epoch or ''):match('^(%w+)/(%d+)%.')
-- If the clock has stepped back to before the epoch, its age is unknown.
if epochRunId ~= runId or tonumber(beganMs) > nowMs then
  beganMs = nowMs
  epoch = string.format('%s/%.0f.%06d', runId, nowMs, time[2])
end
redis.call('SET', marker, epoch)

local count = 0
if replicas then
  redis.call('ZADD', replicas, nowMs, ARGV[1])
  redis.call('ZREMRANGEBYSCORE', replicas, '-inf', nowMs - ARGV[2])
  count = redis.call('ZCARD', replicas)
end

local restoring = marker .. '${RESTORING_SUFFIX}'
local leftMs = redis.call('PTTL', restoring)
-- If the clock has stepped back, the key would last too long.
local isRestoring = leftMs > 0 and leftMs <= tonumber(redis.call('GET', restoring))
return { epoch, nowMs - beganMs, count, isRestoring and 1 or 0 }
`

type Reply = [epoch: string, epochAgeMs: number, replicas: number, restoring: number]

/** Errors of the Redis client are passed on. */
export class Heartbeat {
  readonly #script: (keyCount: number, ...keysAndArgs: string[]) => Promise<Reply>

  constructor(
    private readonly client: RedisClient,
    private readonly keys: RedisKeys,
  ) {
    this.#script = defineScript(client, 'petstoreHeartbeat', HEARTBEAT_SCRIPT)
  }

  /** Reads the epoch of a shard. Fails whenever decisions for the shard fail. */
  async probe(shard: number): Promise<HeartbeatReply> {
    return toReply(await this.#script(1, this.keys.epoch(shard)))
  }

  /** Registers this replica until it is unregistered, or for 5 s. Reads the epoch of shard 0. */
  async register(replicaId: string): Promise<HeartbeatReply> {
    return toReply(await this.#script(2, this.keys.epoch(0), this.keys.replicas, replicaId, `${REGISTRATION_TTL_MS}`))
  }

  async unregister(replicaId: string): Promise<void> {
    await this.client.zrem(this.keys.replicas, replicaId)
  }
}

function toReply([epoch, epochAgeMs, replicas, restoring]: Reply): HeartbeatReply {
  return { epoch, epochAgeMs, replicas, isRestoring: restoring > 0 }
}
