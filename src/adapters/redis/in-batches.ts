/** Number of keys that are reported to Redis concurrently. */
const BATCH_SIZE = 64

/** Calls `work` for every item, for 64 items at a time. */
export async function inBatches<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  for (let start = 0; start < items.length; start += BATCH_SIZE) await Promise.all(items.slice(start, start + BATCH_SIZE).map(work))
}
