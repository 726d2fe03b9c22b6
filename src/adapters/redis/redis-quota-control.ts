import { OperatorError, StoreUnavailable } from '../../core/errors.js'
import type { QuotaControl } from '../../core/ports/quota-control.js'
import type { QuotaRules, QuotaUsage } from '../../core/quota.js'
import { toUsage } from '../../core/quota.js'
import type { QuotaHash, QuotaReply, StateReply } from './quota-hash.js'
import { RedisUnavailable } from './redis-circuit-breaker.js'
import type { RedisConnection } from './redis-connection.js'

export class RedisQuotaControl implements QuotaControl {
  constructor(private readonly redis: RedisConnection) {}

  async announce(keyId: string, version: number): Promise<void> {
    await this.#call(keyId, (hash) => hash.announce(keyId, version))
  }

  async usage(keyId: string, rules: QuotaRules): Promise<QuotaUsage> {
    const { state, at } = await this.#call(keyId, (hash) => hash.peek(keyId, rules))
    return toUsage(state, rules, at)
  }

  async unban(keyId: string): Promise<'lifted' | 'not-banned'> {
    const { outcome } = await this.#call(keyId, (hash) => hash.unban(keyId))
    return outcome === 'done' ? 'lifted' : 'not-banned'
  }

  async #call(keyId: string, command: (hash: QuotaHash) => Promise<QuotaReply>): Promise<StateReply> {
    try {
      const reply = await command(this.redis.quotaHash)
      if ('state' in reply) return reply
      throw new OperatorError(`The quota of ${keyId} in Redis is corrupt. The next request with the key repairs it.`)
    } catch (error) {
      if (error instanceof RedisUnavailable) throw new StoreUnavailable('Redis is unavailable', { cause: error })
      throw error
    }
  }
}
