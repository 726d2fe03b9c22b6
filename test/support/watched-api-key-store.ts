import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { MovableClock } from './movable-clock.js'

/** The memory store, with its queries noted. They can be delayed and made to fail. */
export class WatchedApiKeyStore extends MemoryApiKeyStore {
  readonly queries: string[] = []
  /** What a query meets after it has read; rejects to make it fail. */
  answering: () => Promise<void> = async () => {}

  constructor() {
    super(new MovableClock())
  }

  /** Every query fails with `error` from now on; with none, no more. */
  failWith(error?: Error): void {
    this.answering = error ? () => Promise.reject(error) : async () => {}
  }

  override async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    this.queries.push(secretHash)
    const key = await super.findBySecretHash(secretHash)
    await this.answering()
    return key
  }
}
