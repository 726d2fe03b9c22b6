import type { ApiKey, StoredApiKey } from '../api-key.js'
import type { PlanName, Subscription } from '../plan.js'

/** Every method throws `StoreUnavailable` when the store does not answer in time; whether it changed anything is then unknown. */
export interface ApiKeyStore {
  /** Adds a key. `taken` when its key id or its secret hash is there already; nothing is changed then. */
  insert(key: ApiKey): Promise<'inserted' | 'taken'>

  /**
   * The key in whatever state it is, revoked and expired ones too. Absence is `undefined`.
   * Notes that a usable key was used, to the hour; such a note may come late, and one that cannot be made is left to the next use.
   */
  findBySecretHash(secretHash: string): Promise<ApiKey | undefined>

  /** Absence is `undefined`. Notes nothing. */
  findById(keyId: string): Promise<StoredApiKey | undefined>

  /** All keys, or those of an owner, on a plan or both, in the order of their creation. */
  list(filter: { readonly owner?: string; readonly plan?: PlanName }): Promise<readonly StoredApiKey[]>

  /**
   * Puts a key on a plan, with the limits given and no others. Resolves to the key as it is then, one version later.
   * Absence is `undefined`.
   */
  changePlan(keyId: string, subscription: Subscription): Promise<StoredApiKey | undefined>

  /**
   * Makes a key invalid from `atMs` (Unix time in milliseconds) on, one version later; one that is revoked already stays as it
   * is. Resolves to the key as it is then. Absence is `undefined`.
   */
  revoke(keyId: string, atMs: number): Promise<StoredApiKey | undefined>
}
