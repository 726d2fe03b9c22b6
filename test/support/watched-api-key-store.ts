import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { Gate } from './gate.js'
import { MovableClock } from './movable-clock.js'

/** The memory store. Records its queries, and can delay them and make them fail. */
export class WatchedApiKeyStore extends MemoryApiKeyStore {
  readonly queries: string[] = []
  /** Called by each query after it has read the data. The query waits for the promise, and fails if it rejects. */
  beforeResponse: () => Promise<void> = async () => {}

  constructor() {
    super(new MovableClock())
  }

  /** From now on, every query fails with `error`, or none does. */
  failWith(error?: Error): void {
    this.beforeResponse = error ? () => Promise.reject(error) : async () => {}
  }

  /** Queries stay in flight until the returned function is called. */
  hold(): () => void {
    const gate = new Gate()
    this.beforeResponse = () => gate.pass()
    return gate.open
  }

  override async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    this.queries.push(secretHash)
    const key = await super.findBySecretHash(secretHash)
    await this.beforeResponse()
    return key
  }
}
