import type { StaleKeyRecord } from '../../src/core/ports/quota-store.js'
import type { Charge, Verdict } from '../../src/core/quota.js'

export function chargeOf(verdict: Verdict | StaleKeyRecord | undefined): Charge {
  if (!verdict || !('charge' in verdict)) throw new Error(`Not admitted: ${JSON.stringify(verdict)}`)
  return verdict.charge
}

/** Number of requests that were admitted and charged. */
export function admittedOf(verdicts: readonly (Verdict | StaleKeyRecord)[]): number {
  return verdicts.filter((verdict) => 'charge' in verdict).length
}

/** Runs all at once. */
export function times<Outcome>(count: number, make: (index: number) => Promise<Outcome>): Promise<Outcome[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => make(index)))
}

/** Runs one after the other. */
export async function inSequence<Outcome>(count: number, make: (index: number) => Promise<Outcome>): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (let index = 0; index < count; index++) outcomes.push(await make(index))
  return outcomes
}
