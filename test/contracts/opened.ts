/** An adapter for one test of a contract suite, with data of its own, which is empty at first. */
export interface Opened<Port> {
  readonly port: Port
  /** Opens another adapter with the same data, like another replica or this one after a restart. `close` closes it, too. */
  readonly reopen: () => Promise<Port>
  readonly close: () => Promise<void>
}

/** Makes the engine of all open adapters unavailable. A contract suite tests outages only if it gets one. */
export interface Outage {
  readonly begin: () => Promise<void>
  /** Resolves when the adapters use the engine again. Does nothing if there is no outage. */
  readonly end: () => Promise<void>
}
