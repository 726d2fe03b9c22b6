import type { Cluster, Redis } from 'ioredis'

/** A connection to one server, to the primary of a Sentinel, or to a Redis Cluster. */
export type RedisClient = Redis | Cluster
