/** The adapter that one test of a contract suite uses. It has its own data, which is initially empty. */
export interface OpenAdapter<Port> {
  readonly port: Port
  /** Opens another adapter on the same data, like another replica or a restart. `close` closes that adapter as well. */
  readonly reopen: () => Promise<Port>
  readonly close: () => Promise<void>
}

/** Stops and restarts the engine of all open adapters. A suite declares its outage tests only if it is passed one. */
export interface Outage {
  readonly begin: () => Promise<void>
  /** Resolves when the adapters can use the engine again. Also works without an outage. */
  readonly end: () => Promise<void>
}
