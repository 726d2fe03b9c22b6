import type { StaleKeyRecord } from '../../src/core/ports/quota-store.js'
import type { Charge, Verdict } from '../../src/core/quota.js'

export function requireCharge(verdict: Verdict | StaleKeyRecord | undefined): Charge {
  if (!verdict || !('charge' in verdict)) throw new Error(`Not admitted: ${JSON.stringify(verdict)}`)
  return verdict.charge
}

/** Counts the requests that were admitted and charged. */
export function countAdmitted(verdicts: readonly (Verdict | StaleKeyRecord)[]): number {
  return verdicts.filter((verdict) => 'charge' in verdict).length
}

/** Starts all calls at the same time. */
export function inParallel<Outcome>(count: number, make: (index: number) => Promise<Outcome>): Promise<Outcome[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => make(index)))
}

/** Makes one call at a time. */
export async function inSequence<Outcome>(count: number, make: (index: number) => Promise<Outcome>): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (let index = 0; index < count; index++) outcomes.push(await make(index))
  return outcomes
}

/** Makes 50 calls at a time: few enough that Redis responds in time, also on a slow machine. */
export async function inParallelBatches<Outcome>(count: number, make: (index: number) => Promise<Outcome>): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (let start = 0; start < count; start += 50)
    outcomes.push(...(await inParallel(Math.min(50, count - start), (index) => make(start + index))))
  return outcomes
}
