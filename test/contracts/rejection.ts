/** Resolves to the reason for which the promise rejects. Throws if it resolves. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown
  try {
    value = await promise
  } catch (reason) {
    return reason
  }
  throw new Error(`Expected a rejection, got ${String(value)}`)
}
