import type { ApiKey } from '../api-key.js'

/** Both methods throw `StoreUnavailable` when the store does not answer in time. */
export interface ApiKeyStore {
  /** Adds a key. `taken` when its key id or its secret hash is there already; nothing is changed then. */
  insert(key: ApiKey): Promise<'inserted' | 'taken'>

  /** The key in whatever state it is, revoked and expired ones too. Absence is `undefined`. */
  findBySecretHash(secretHash: string): Promise<ApiKey | undefined>
}
