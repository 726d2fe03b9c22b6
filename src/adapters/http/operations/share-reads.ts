/**
 * Calls for the same key in the same turn of the event loop share one read, with its result or its error. The read starts when the turn has
 * ended, so it sees every write that was complete before any of these calls. A later call starts a new read.
 */
export function shareReads<Value>(read: (key: string) => Promise<Value>): (key: string) => Promise<Value> {
  const readsOfThisTurn = new Map<string, Promise<Value>>()

  async function readAfterThisTurn(key: string): Promise<Value> {
    // Handlers run in promise callbacks, and this resolves after all promise callbacks of the turn. `setImmediate` would cost more CPU time per list.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    readsOfThisTurn.delete(key)
    return read(key)
  }

  return (key) => {
    const shared = readsOfThisTurn.get(key) ?? readAfterThisTurn(key)
    readsOfThisTurn.set(key, shared)
    return shared
  }
}
