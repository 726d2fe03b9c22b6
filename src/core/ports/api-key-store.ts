import type { ApiKey, StoredApiKey } from '../api-key.js'
import type { PlanName, Subscription } from '../plan.js'

/** Every method throws `StoreUnavailable` if the store does not respond in time. It is then unknown whether a write took place. */
export interface ApiKeyStore {
  /** Adds a key. Returns `taken`, and changes nothing, if a key with this key ID or secret hash exists. */
  insert(key: ApiKey): Promise<'inserted' | 'taken'>

  /**
   * Returns the key in any state, including revoked and expired, or `undefined` if it does not exist.
   * Records the use of a usable key, accurate to the hour, possibly later. If that fails, the next use is recorded instead.
   */
  findBySecretHash(secretHash: string): Promise<ApiKey | undefined>

  /** Returns `undefined` if the key does not exist. Does not record a use. */
  findById(keyId: string): Promise<StoredApiKey | undefined>

  /** Returns the keys that match all filters, oldest first. */
  list(filter: { readonly owner?: string; readonly plan?: PlanName }): Promise<readonly StoredApiKey[]>

  /**
   * Moves a key to a plan, replaces or removes its limits, and increments its version. Returns the changed key, or `undefined`, with
   * nothing changed, if the key does not exist or is revoked.
   */
  changePlan(keyId: string, subscription: Subscription): Promise<StoredApiKey | undefined>

  /**
   * Revokes a key from `atMs` (Unix time in milliseconds) on and increments its version. Returns the revoked key, or `undefined` if the
   * key does not exist. A key that is already revoked stays unchanged.
   */
  revoke(keyId: string, atMs: number): Promise<StoredApiKey | undefined>
}
