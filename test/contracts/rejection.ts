/** Returns the reason of a rejected promise. Throws if the promise is fulfilled. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown
  try {
    value = await promise
  } catch (reason) {
    return reason
  }
  throw new Error(`Expected a rejection, got ${String(value)}`)
}
