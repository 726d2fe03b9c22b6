import { StoreUnavailable } from '../../core/errors.js'
import type { QuotaControl } from '../../core/ports/quota-control.js'
import type { QuotaRules, QuotaUsage } from '../../core/quota.js'
import { toUsage } from '../../core/quota.js'
import type { KeyChange } from './key-changes.js'
import type { RedisConnection } from './redis-connection.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'

/** What operators do, on the hashes that all replicas decide on. */
export class RedisQuotaControl implements QuotaControl {
  constructor(private readonly redis: RedisConnection) {}

  async announce(keyId: string, version: number): Promise<void> {
    await this.#call(keyId, () => this.redis.quotaHash.announce(keyId, version))
    await this.#publish(keyId)
  }

  async usage(keyId: string, rules: QuotaRules): Promise<QuotaUsage> {
    const { state, at } = await this.#call(keyId, () => this.redis.quotaHash.peek(keyId, rules))
    return toUsage(state, rules, at)
  }

  async unban(keyId: string): Promise<'lifted' | 'not-banned'> {
    const { became } = await this.#call(keyId, () => this.redis.quotaHash.unban(keyId))
    await this.#publish(keyId, { pardoned: true })
    return became === 'charged' ? 'lifted' : 'not-banned'
  }

  /** A message that does not get through costs the second that rejections are remembered. */
  async #publish(keyId: string, change?: KeyChange): Promise<void> {
    try {
      await this.redis.breaker.call(() => this.redis.keyChanges.publish(keyId, change), keyId)
    } catch (error) {
      if (!(error instanceof RedisUnavailable)) throw error
    }
  }

  async #call<Reply>(keyId: string, command: () => Promise<Reply>): Promise<Reply> {
    try {
      return await this.redis.breaker.call(command, keyId)
    } catch (error) {
      if (error instanceof RedisUnavailable) throw new StoreUnavailable('Redis could not be reached', { cause: error })
      throw error
    }
  }
}
