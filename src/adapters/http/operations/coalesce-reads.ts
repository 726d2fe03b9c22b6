/**
 * Calls for the same query share one read, with its result or its error, if they are made in the same callback of the event loop, for example
 * because one reply of Redis has admitted their requests. The read starts after the last of them, so it sees every write that was complete
 * before each of them. A later call starts a new read.
 */
export function coalesceReads<Value>(read: (query: string) => Promise<Value>): (query: string) => Promise<Value> {
  const pendingReads = new Map<string, Promise<Value>>()

  async function readAfterThisCallback(query: string): Promise<Value> {
    // Handlers run in promise callbacks, and this resolves after all of them. `setImmediate` would cost more CPU time per list.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    pendingReads.delete(query)
    return read(query)
  }

  return (query) => {
    const pending = pendingReads.get(query) ?? readAfterThisCallback(query)
    pendingReads.set(query, pending)
    return pending
  }
}
