/** What a promise was rejected with; an error when it was not rejected at all. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown
  try {
    value = await promise
  } catch (reason) {
    return reason
  }
  throw new Error(`Expected a rejection, got ${String(value)}`)
}
