import { StoreUnavailable } from '../../core/errors.js'
import type { QuotaControl } from '../../core/ports/quota-control.js'
import type { QuotaRules, QuotaUsage } from '../../core/quota.js'
import { toUsage } from '../../core/quota.js'
import type { QuotaHash } from './quota-hash.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'
import type { RedisConnection } from './redis-connection.js'

export class RedisQuotaControl implements QuotaControl {
  constructor(private readonly redis: RedisConnection) {}

  announce(keyId: string, version: number): Promise<void> {
    return this.#call(keyId, (hash) => hash.announce(keyId, version))
  }

  async usage(keyId: string, rules: QuotaRules): Promise<QuotaUsage> {
    const { state, at } = await this.#call(keyId, (hash) => hash.peek(keyId))
    return toUsage(state, rules, at)
  }

  unban(keyId: string): Promise<'lifted' | 'not-banned'> {
    return this.#call(keyId, (hash) => hash.unban(keyId))
  }

  async #call<Reply>(keyId: string, command: (hash: QuotaHash) => Promise<Reply>): Promise<Reply> {
    const { breaker, quotaHash } = this.redis
    try {
      return await breaker.call(() => command(quotaHash), keyId)
    } catch (error) {
      if (error instanceof RedisUnavailable) throw new StoreUnavailable('Redis is unavailable', { cause: error })
      throw error
    }
  }
}
