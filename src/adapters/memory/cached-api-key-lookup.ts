import { LRUCache } from 'lru-cache'
import type { ApiKey } from '../../core/api-key.js'
import type { ApiKeyLookup } from '../../core/ports/api-key-lookup.js'
import type { ApiKeyStore } from '../../core/ports/api-key-store.js'
import type { Clock } from '../../core/ports/clock.js'

/** With the longest that a query takes, 2 s, it stays within the 10 s that the port promises. */
const REMEMBERED_MS = 8_000
const REMEMBERED_KEYS = 10_000

/** Absence is remembered too, so that one wrong key sent again and again is one query. */
interface TestResponse {
  readonly key: ApiKey | undefined
}

export class CachedApiKeyLookup implements ApiKeyLookup {
  readonly #answers: LRUCache<string, TestResponse>
  readonly #everFound = new LRUCache<string, true>({ max: REMEMBERED_KEYS })

  constructor(apiKeyStore: ApiKeyStore, clock: Clock) {
    this.#answers = new LRUCache({
      max: REMEMBERED_KEYS,
      ttl: REMEMBERED_MS,
      ttlResolution: 0,
      perf: { now: () => clock.nowMs() },
      fetchMethod: async (secretHash) => ({ key: await apiKeyStore.findBySecretHash(secretHash) }),
      // A look-up that is pushed out of the memory while it is under way is answered all the same.
      ignoreFetchAbort: true,
    })
  }

  recall(secretHash: string): ApiKey | undefined {
    return this.#answers.get(secretHash)?.key
  }

  hasFound(secretHash: string): boolean {
    return this.#everFound.has(secretHash)
  }

  async find(secretHash: string): Promise<ApiKey | undefined> {
    const { key } = await this.#answers.forceFetch(secretHash)
    if (key) this.#everFound.set(secretHash, true)
    return key
  }

  forget(secretHash: string): void {
    this.#answers.delete(secretHash)
  }
}
