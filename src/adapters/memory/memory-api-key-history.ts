import type { ApiKey } from '../../core/api-key.js'
import type { ApiKeyChange } from '../../core/api-key-change.js'
import type { ApiKeyHistory, ApiKeyHistoryEntry, ApiKeyHistoryFilter } from '../../core/ports/api-key-history.js'

export class MemoryApiKeyHistory implements ApiKeyHistory {
  readonly #entries: ApiKeyHistoryEntry[] = []
  readonly #owners = new Map<string, string>()

  /** Begins the history of a key. */
  begin({ keyId, owner }: ApiKey, issue: ApiKeyChange): void {
    this.#owners.set(keyId, owner)
    this.#entries.push(structuredClone({ keyId, owner, ...issue }))
  }

  async add(keyId: string, change: ApiKeyChange): Promise<void> {
    const owner = this.#owners.get(keyId)
    if (owner !== undefined) this.#entries.push(structuredClone({ keyId, owner, ...change }))
  }

  async list({
    keyId,
    owner,
    sinceMs = -Infinity,
    untilMs = Infinity,
    limit,
  }: ApiKeyHistoryFilter): Promise<readonly ApiKeyHistoryEntry[]> {
    const matching = this.#entries
      .filter((entry) => keyId === undefined || entry.keyId === keyId)
      .filter((entry) => owner === undefined || entry.owner === owner)
      .filter(({ atMs }) => sinceMs <= atMs && atMs < untilMs)
      .toSorted((a, b) => a.atMs - b.atMs || (a.keyId < b.keyId ? -1 : Number(a.keyId > b.keyId)))
    return structuredClone(limit === undefined ? matching : matching.slice(-limit))
  }
}
