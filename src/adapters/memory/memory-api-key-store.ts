import type { ApiKey, StoredApiKey } from '../../core/api-key.js'
import { shouldRecordUse } from '../../core/api-key.js'
import type { PlanName, Subscription } from '../../core/plan.js'
import type { ApiKeyStore } from '../../core/ports/api-key-store.js'
import type { Clock } from '../../core/ports/clock.js'
import type { Limits } from '../../core/quota.js'

export class MemoryApiKeyStore implements ApiKeyStore {
  readonly #byKeyId = new Map<string, StoredApiKey>()
  readonly #keyIdBySecretHash = new Map<string, string>()

  constructor(private readonly clock: Clock) {}

  async insert(key: ApiKey): Promise<'inserted' | 'taken'> {
    if (this.#keyIdBySecretHash.has(key.secretHash) || this.#byKeyId.has(key.keyId)) return 'taken'
    this.#keyIdBySecretHash.set(key.secretHash, key.keyId)
    this.#store(key)
    return 'inserted'
  }

  async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    const stored = this.#byKeyId.get(this.#keyIdBySecretHash.get(secretHash) ?? '')
    if (!stored) return undefined
    const { lastUsedAtMs, ...key } = stored
    const nowMs = this.clock.nowMs()
    if (shouldRecordUse(key, lastUsedAtMs, nowMs)) this.#store({ ...key, lastUsedAtMs: nowMs })
    return key
  }

  async findById(keyId: string): Promise<StoredApiKey | undefined> {
    return this.#byKeyId.get(keyId)
  }

  async list({ owner, plan }: { owner?: string; plan?: PlanName }): Promise<readonly StoredApiKey[]> {
    const isMatch = (key: ApiKey) => (owner === undefined || key.owner === owner) && (plan === undefined || key.plan === plan)
    return [...this.#byKeyId.values()].filter(isMatch).toSorted((a, b) => a.createdAtMs - b.createdAtMs || (a.keyId < b.keyId ? -1 : 1))
  }

  async changePlan(keyId: string, { plan, limits }: Subscription): Promise<StoredApiKey | undefined> {
    const stored = this.#byKeyId.get(keyId)
    if (!stored || stored.revokedAtMs !== undefined) return undefined
    const changed: StoredApiKey & { limits?: Limits } = { ...stored, plan, version: stored.version + 1 }
    delete changed.limits
    return this.#store(limits ? { ...changed, limits } : changed)
  }

  async revoke(keyId: string, atMs: number): Promise<StoredApiKey | undefined> {
    const stored = this.#byKeyId.get(keyId)
    if (!stored || stored.revokedAtMs !== undefined) return stored
    return this.#store({ ...stored, revokedAtMs: atMs, version: stored.version + 1 })
  }

  #store(key: StoredApiKey): StoredApiKey {
    const stored = Object.freeze({ ...key, ...(key.limits ? { limits: Object.freeze({ ...key.limits }) } : {}) })
    this.#byKeyId.set(key.keyId, stored)
    return stored
  }
}
