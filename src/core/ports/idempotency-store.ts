/** Which retry belongs to which request: unique per key of the caller. */
export interface IdempotencyScope {
  readonly keyId: string
  /** As the caller sent it, 1 to 255 characters. */
  readonly idempotencyKey: string
}

export interface IdempotencyRecord {
  /** The request in canonical form: equal exactly when two requests ask for the same. */
  readonly fingerprint: string
  /** The id that the created pet has or will have. */
  readonly petId: bigint
}

/** How long a record answers retries. */
export const IDEMPOTENCY_MS = 24 * 60 * 60 * 1000

export interface IdempotencyStore {
  /**
   * The record of this scope: `offered`, when none younger than 24 h is there, else the one that is.
   * One atomic step: of concurrent claims all get the same record. Resolved means durable.
   * Throws `StoreUnavailable` when the store does not answer in time; the claim may then have been stored.
   */
  claim(scope: IdempotencyScope, offered: IdempotencyRecord): Promise<IdempotencyRecord>
}
