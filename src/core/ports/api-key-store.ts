import type { ApiKey, StoredApiKey } from '../api-key.js'
import type { ApiKeyChange } from '../api-key-change.js'
import type { PlanName } from '../plan.js'

/** Every method throws `StoreUnavailable` if the store does not respond in time. It is then unknown whether a write took place. */
export interface ApiKeyStore {
  /** Adds a key and the first change of its history. Returns `taken`, and changes nothing, if a key with this key ID or secret hash exists. */
  insert(key: ApiKey, issue: ApiKeyChange): Promise<'inserted' | 'taken'>

  /**
   * Returns the key that has this secret, or has it as its old secret, in any state: the key may be revoked or expired, and the grace period of
   * the old secret may have ended. Returns `undefined` if there is none. A rotation at the same time does not hide the key.
   * Records the use of a valid secret, accurate to the hour, possibly later. If that fails, the next use is recorded instead.
   */
  findBySecretHash(secretHash: string): Promise<ApiKey | undefined>

  /** Returns `undefined` if the key does not exist. Does not record a use. */
  findById(keyId: string): Promise<StoredApiKey | undefined>

  /** Returns the keys that match all filters, oldest first. */
  list(filter: { readonly owner?: string; readonly plan?: PlanName }): Promise<readonly StoredApiKey[]>

  /**
   * Stores a changed key and adds the change to its history, in one write. `key.version` is the version after the change. Returns `conflict`,
   * and changes nothing, unless the stored key exists and has the version before. Keeps the recorded use of the key. Throws if another key has
   * the secret.
   */
  update(key: StoredApiKey, change: ApiKeyChange): Promise<'updated' | 'conflict'>
}
