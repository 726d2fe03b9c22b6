import type { StoredApiKey } from './api-key.js'
import type { ApiKeyChange } from './api-key-change.js'
import { ApiKeyNotFound } from './errors.js'
import type { ApiKeyStore } from './ports/api-key-store.js'
import type { Clock } from './ports/clock.js'

/** Returns the key after the change and what its history keeps, or `undefined` to leave the key unchanged. Throws to reject the change. */
export type ComputeChange = (
  key: StoredApiKey,
  nowMs: number,
) => { readonly key: StoredApiKey; readonly change: Omit<ApiKeyChange, 'atMs' | 'by'> } | undefined

/** A stored key after a command. */
export interface ChangeResult {
  readonly key: StoredApiKey
  /** What the history of the key keeps. `undefined` if the key stayed unchanged. */
  readonly change: ApiKeyChange | undefined
}

/**
 * Changes a key, increments its version and adds the change to its history, in one write. If another change was stored in the meantime, reads
 * the key and computes the change again. Throws `ApiKeyNotFound`.
 */
export async function changeApiKey(
  { apiKeyStore, clock }: { apiKeyStore: ApiKeyStore; clock: Clock },
  keyId: string,
  by: string,
  compute: ComputeChange,
): Promise<ChangeResult> {
  for (;;) {
    const stored = await apiKeyStore.findById(keyId)
    if (!stored) throw new ApiKeyNotFound(keyId)
    const atMs = clock.nowMs()
    const changed = compute(stored, atMs)
    if (!changed) return { key: stored, change: undefined }
    const key = { ...changed.key, version: stored.version + 1 }
    const change = { atMs, by, ...changed.change }
    if ((await apiKeyStore.update(key, change)) === 'updated') return { key, change }
  }
}
