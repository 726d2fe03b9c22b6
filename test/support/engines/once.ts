/** Does the work at the first call; every call gets its outcome, a failure too. */
export function once<Outcome>(work: () => Promise<Outcome>): () => Promise<Outcome> {
  let outcome: Promise<Outcome> | undefined
  return () => (outcome ??= work())
}
