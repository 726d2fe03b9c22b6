export interface Clock {
  /** Unix time in milliseconds. May step back or forward. */
  nowMs(): number

  /** Milliseconds since an arbitrary point in time. Never steps back. For durations. */
  monotonicMs(): number
}
