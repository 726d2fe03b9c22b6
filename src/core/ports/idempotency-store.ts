/** Identifies a request and its retries. An idempotency key is unique per API key. */
export interface IdempotencyScope {
  readonly keyId: string
  /** As the client sent it, 1 to 255 characters. */
  readonly idempotencyKey: string
}

export interface IdempotencyRecord {
  /** The request in canonical form: equal if and only if two requests ask for the same thing. */
  readonly fingerprint: string
  /** The ID that the created pet has or will have. */
  readonly petId: bigint
}

/** How long a record is valid. */
export const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000

export interface IdempotencyStore {
  /**
   * Returns the record of this scope: the existing one if it is younger than 24 h, otherwise `offered`, which is then stored.
   * Atomic: all concurrent claims get the same record. The record is durable when the promise resolves.
   * Throws `StoreUnavailable` if the store does not respond in time. The claim may have been stored anyway.
   */
  claim(scope: IdempotencyScope, offered: IdempotencyRecord): Promise<IdempotencyRecord>
}
