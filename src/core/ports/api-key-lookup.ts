import type { ApiKey } from '../api-key.js'

/** Finds the record behind a secret, with a bounded memory of this replica in front of the store. */
export interface ApiKeyLookup {
  /** The key, if this replica found it within the last 10 s. No I/O. */
  recall(secretHash: string): ApiKey | undefined

  /** Whether this replica has ever found a key for it, as far back as its bounded memory goes. No I/O. */
  hasFound(secretHash: string): boolean

  /**
   * The key as the store had it at most 10 s ago; absence is `undefined`, and remembered no longer than that either.
   * Concurrent look-ups of one secret are one query. Throws `StoreUnavailable`, which is not remembered.
   */
  find(secretHash: string): Promise<ApiKey | undefined>

  /** The next look-up of the key asks the store. Whether it was ever found stays known. */
  forget(secretHash: string): void
}
