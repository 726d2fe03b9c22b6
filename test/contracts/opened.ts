/** An adapter for one test of a contract suite, on its own data, which is initially empty. */
export interface Opened<Port> {
  readonly port: Port
  /** Opens the same data again, like another replica or a restart. `close` closes it as well. */
  readonly reopen: () => Promise<Port>
  readonly close: () => Promise<void>
}

/** Stops and restarts the engine of all open adapters. A suite declares its outage tests only if it gets one. */
export interface Outage {
  readonly begin: () => Promise<void>
  /** Resolves when the adapters can use the engine again. Also works without an outage. */
  readonly end: () => Promise<void>
}
