export interface PetIds {
  /**
   * A fresh id, 1 to 2^53 − 1: never given out before, by any replica, restarts included. Gaps are allowed.
   * Throws `StoreUnavailable` when none can be had, and a plain error when the range is used up.
   */
  next(): Promise<bigint>
}
