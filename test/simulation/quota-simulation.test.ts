import { expect } from 'chai'
import { runSimulation, runSimulations } from '../support/simulation/run-simulations.js'
import { Tally } from '../support/simulation/tally.js'

/** Runs only the simulation with this seed, which a failed test prints, and lists its events. */
const REPEATED_SEED = process.env['SIMULATION_SEED']
const SEED = 1
const STEPS = process.env['LONG'] ? 1_000_000 : 100_000

describe('The quotas of several replicas, with random failures of Redis, the network, the replicas and the clocks', function () {
  this.timeout(STEPS * 5)

  it(`keep their guarantees in ${STEPS.toLocaleString('en-US')} steps`, async () => {
    if (REPEATED_SEED) return runSimulation(Number(REPEATED_SEED), new Tally(), { log: console.log })
    const tally = await runSimulations(SEED, STEPS)
    expect(tally.get('request')).to.be.at.least(STEPS / 2)
    tally.expectAtLeast(STEPS / 100, 'shared: admitted', 'shared: exhausted', 'shared: banned')
    tally.expectAtLeast(STEPS / 200, 'local: admitted', 'local: exhausted', 'local: banned', 'cached: exhausted', 'cached: banned')
    tally.expectAtLeast(STEPS / 1_000, 'Redis: merge', 'Redis: reconcile', 'refund', 'flush', 'kill', 'failover', 'freeze')
    tally.expectAtLeast(
      STEPS / 1_000,
      'recovered everything',
      'recovered behind',
      'recovered nothing',
      'partition',
      'dropConnection',
      'slowDown',
    )
    tally.expectAtLeast(STEPS / 5_000, 'load', 'corrupt', 'crash', 'add', 'remove', 'stepSharedClock', 'stepLocalClock', 'Redis: unban')
    tally.expectAtLeast(STEPS / 1_000, 'window with more than its limit')
    tally.expectAtLeast(STEPS / 10_000, 'end without clock steps')
  })
})
