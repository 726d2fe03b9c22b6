/** Runs the work and returns the unhandled rejections that it causes. Mocha does not report them. */
export async function collectUnhandledRejections(work: () => Promise<unknown>): Promise<readonly unknown[]> {
  const reasons: unknown[] = []
  const note = (reason: unknown) => void reasons.push(reason)
  process.on('unhandledRejection', note)
  try {
    await work()
    // Node emits the event after the microtasks.
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    process.off('unhandledRejection', note)
  }
  return reasons
}
