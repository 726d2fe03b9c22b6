import { fnv1a } from '../../core/fnv1a.js'

/** Few enough to probe each of them, and enough to distribute the API keys evenly over the nodes. */
export const CLUSTER_SHARDS = 256

/**
 * Names the keys in Redis. Each API key and each IP address belongs to a shard. All keys of a shard have the same hash tag, the part in braces,
 * so that a Redis Cluster keeps them on one node. A single server has one shard.
 */
export class RedisKeys {
  constructor(
    private readonly prefix: string,
    readonly shardCount: number,
  ) {}

  /** `name`: the ID of an API key or an IP address. Returns 0 to `shardCount` − 1. */
  getShard(name: string): number {
    return this.shardCount === 1 ? 0 : fnv1a(name) % this.shardCount
  }

  quota(keyId: string): string {
    return `${this.prefix}quota:${this.#tag(this.getShard(keyId))}:${keyId}`
  }

  /** Identifies the data of a shard. */
  epoch(shard: number): string {
    return `${this.prefix}epoch:${this.#tag(shard)}`
  }

  /** The registered replicas, in shard 0. */
  get replicas(): string {
    return `${this.prefix}replicas:${this.#tag(0)}`
  }

  /** The prefix and the rest of the key that counts the failed authentications of an IP address, as rate-limiter-flexible joins them. */
  failureBucket(address: string, bucketKey: string): string {
    return `${this.#tag(this.getShard(address))}:${bucketKey}`
  }

  get failurePrefix(): string {
    return `${this.prefix}failed-authentications`
  }

  #tag(shard: number): string {
    return `{${shard}}`
  }
}
