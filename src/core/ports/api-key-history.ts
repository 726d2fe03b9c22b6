import type { ApiKeyChange } from '../api-key-change.js'

/** A change with the key that was changed. */
export interface ApiKeyHistoryEntry extends ApiKeyChange {
  readonly keyId: string
  readonly owner: string
}

export interface ApiKeyHistoryFilter {
  readonly keyId?: string
  readonly owner?: string
  /** Only changes at this time or later. */
  readonly sinceMs?: number
  /** Only changes before this time. */
  readonly untilMs?: number
  /** Only this number of changes, the latest. */
  readonly limit?: number
}

/** The changes of all API keys. Changes are added, and never changed or removed. Every method throws `StoreUnavailable` during an outage. */
export interface ApiKeyHistory {
  /** Adds a change that is not stored in the key itself. `ApiKeyStore` adds all others. Adds nothing if the key does not exist. */
  add(keyId: string, change: ApiKeyChange): Promise<void>

  /** Returns the changes that match all filters, oldest first. */
  list(filter: ApiKeyHistoryFilter): Promise<readonly ApiKeyHistoryEntry[]>
}
