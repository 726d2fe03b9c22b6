import type { ApiKey } from '../../core/api-key.js'
import type { ApiKeyStore } from '../../core/ports/api-key-store.js'

export class MemoryApiKeyStore implements ApiKeyStore {
  readonly #bySecretHash = new Map<string, ApiKey>()
  readonly #keyIds = new Set<string>()

  async insert(key: ApiKey): Promise<'inserted' | 'taken'> {
    if (this.#bySecretHash.has(key.secretHash) || this.#keyIds.has(key.keyId)) return 'taken'
    this.#bySecretHash.set(key.secretHash, Object.freeze({ ...key }))
    this.#keyIds.add(key.keyId)
    return 'inserted'
  }

  async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    return this.#bySecretHash.get(secretHash)
  }
}
