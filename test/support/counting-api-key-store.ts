import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import type { ApiKey } from '../../src/core/api-key.js'

/** The real store, which counts how often it is asked for a key, and fails with `failure` for as long as there is one. */
export class CountingApiKeyStore extends MemoryApiKeyStore {
  lookUps = 0
  failure: Error | undefined

  override async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    this.lookUps += 1
    if (this.failure) throw this.failure
    return super.findBySecretHash(secretHash)
  }
}
