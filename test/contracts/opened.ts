/** An adapter as a contract suite uses it, on data of its own that is empty at first. */
export interface Opened<Port> {
  readonly port: Port
  /** Another handle on the same data: another replica, or this one after a restart. `close` closes it, too. */
  readonly reopen: () => Promise<Port>
  readonly close: () => Promise<void>
}

/** Takes away, and gives back, the engine under the handles that are open. A suite that is given one declares its outage tests. */
export interface Outage {
  readonly begin: () => Promise<void>
  /** Resolves when the adapters use the engine again. May be called when there is no outage. */
  readonly end: () => Promise<void>
}
