import type { ApiKey, StoredApiKey } from '../../core/api-key.js'
import { shouldRecordUse } from '../../core/api-key.js'
import type { ApiKeyChange } from '../../core/api-key-change.js'
import type { PlanName } from '../../core/plan.js'
import type { ApiKeyStore } from '../../core/ports/api-key-store.js'
import type { Clock } from '../../core/ports/clock.js'
import { MemoryApiKeyHistory } from './memory-api-key-history.js'

export class MemoryApiKeyStore implements ApiKeyStore {
  readonly #byKeyId = new Map<string, StoredApiKey>()
  readonly #keyIdBySecretHash = new Map<string, string>()

  constructor(
    private readonly clock: Clock,
    private readonly history = new MemoryApiKeyHistory(),
  ) {}

  async insert(key: ApiKey, issue: ApiKeyChange): Promise<'inserted' | 'taken'> {
    if (this.#keyIdBySecretHash.has(key.secretHash) || this.#byKeyId.has(key.keyId)) return 'taken'
    this.#store(key)
    this.history.begin(key, issue)
    return 'inserted'
  }

  async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    const stored = this.#byKeyId.get(this.#keyIdBySecretHash.get(secretHash) ?? '')
    if (!stored) return undefined
    const { lastUsedAtMs, ...key } = stored
    const nowMs = this.clock.nowMs()
    if (shouldRecordUse(key, { secretHash, lastUsedAtMs }, nowMs)) {
      const oldSecret = stored.oldSecret?.hash === secretHash ? { oldSecret: { ...stored.oldSecret, lastUsedAtMs: nowMs } } : {}
      this.#store({ ...stored, lastUsedAtMs: nowMs, ...oldSecret })
    }
    return key
  }

  async findById(keyId: string): Promise<StoredApiKey | undefined> {
    return this.#byKeyId.get(keyId)
  }

  async list({ owner, plan }: { owner?: string; plan?: PlanName }): Promise<readonly StoredApiKey[]> {
    const isMatch = (key: ApiKey) => (owner === undefined || key.owner === owner) && (plan === undefined || key.plan === plan)
    return [...this.#byKeyId.values()].filter(isMatch).toSorted((a, b) => a.createdAtMs - b.createdAtMs || (a.keyId < b.keyId ? -1 : 1))
  }

  async update(key: StoredApiKey, change: ApiKeyChange): Promise<'updated' | 'conflict'> {
    const stored = this.#byKeyId.get(key.keyId)
    if (stored?.version !== key.version - 1) return 'conflict'
    if ((this.#keyIdBySecretHash.get(key.secretHash) ?? key.keyId) !== key.keyId) throw new Error('Another key has this secret hash')
    const { lastUsedAtMs, ...updated } = { ...key, lastUsedAtMs: stored.lastUsedAtMs }
    for (const hash of listSecretHashes(stored)) this.#keyIdBySecretHash.delete(hash)
    this.#store({ ...updated, ...(lastUsedAtMs === undefined ? {} : { lastUsedAtMs }) })
    await this.history.add(key.keyId, change)
    return 'updated'
  }

  #store(key: StoredApiKey): void {
    for (const hash of listSecretHashes(key)) this.#keyIdBySecretHash.set(hash, key.keyId)
    this.#byKeyId.set(key.keyId, deepFreeze(structuredClone(key)))
  }
}

function listSecretHashes({ secretHash, oldSecret }: ApiKey): string[] {
  return oldSecret ? [secretHash, oldSecret.hash] : [secretHash]
}

function deepFreeze<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) if (typeof part === 'object') deepFreeze(part as object)
  return Object.freeze(value)
}
