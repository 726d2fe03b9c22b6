/** The rejections that nobody caught while the work went on. Mocha lets them pass. */
export async function unhandledRejections(work: () => Promise<unknown>): Promise<readonly unknown[]> {
  const reasons: unknown[] = []
  const note = (reason: unknown) => void reasons.push(reason)
  process.on('unhandledRejection', note)
  try {
    await work()
    // Node tells of them after the microtasks.
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    process.off('unhandledRejection', note)
  }
  return reasons
}
