export interface PetIds {
  /**
   * Returns an ID from 1 to 2^53 − 1 that no replica has returned before, also across restarts. Gaps are allowed.
   * Throws `StoreUnavailable` if the store does not respond in time, and a plain `Error` if the range is exhausted.
   */
  next(): Promise<bigint>
}
