import { setTimeout } from 'node:timers/promises'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import type { ApiKey } from '../../src/core/api-key.js'

/** The real store, which counts how often it is asked for a key, takes its time, and fails with `failure` for as long as there is one. */
export class CountingApiKeyStore extends MemoryApiKeyStore {
  lookUps = 0
  latencyMs = 0
  failure: Error | undefined

  override async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    this.lookUps += 1
    if (this.latencyMs > 0) await setTimeout(this.latencyMs)
    if (this.failure) throw this.failure
    return super.findBySecretHash(secretHash)
  }
}
