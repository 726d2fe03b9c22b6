import { Random } from './random.js'
import type { Parts } from './simulation.js'
import { Simulation } from './simulation.js'
import { Tally } from './tally.js'
import { VirtualTime } from './virtual-time.js'

export const STEPS_PER_SIMULATION = 1_000

/** Every fourth simulation is calm. Throws an error that names the seed of the simulation that failed. */
export async function runSimulations(seed: number, steps: number, parts: Parts = {}): Promise<Tally> {
  const tally = new Tally()
  for (let index = 0; index < steps / STEPS_PER_SIMULATION; index++) await runSimulation(seed + index, tally, parts)
  return tally
}

export async function runSimulation(seed: number, tally: Tally, parts: Parts = {}): Promise<void> {
  const time = new VirtualTime()
  try {
    const simulation = new Simulation(new Random(seed), time, tally, seed % 4 === 0, parts)
    await simulation.run(STEPS_PER_SIMULATION)
    tally.add('simulation')
  } catch (error) {
    throw new Error(`Simulation with seed ${seed} failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  } finally {
    time.restore()
  }
}
