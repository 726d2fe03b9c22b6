export interface Clock {
  /** Unix time in milliseconds. */
  nowMs(): number
}
