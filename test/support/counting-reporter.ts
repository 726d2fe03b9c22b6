import Mocha from 'mocha'
import { skipOf } from './skip.js'

const { EVENT_TEST_PENDING } = Mocha.Runner.constants

/** How long after the last test the process may stay open before it is ended by force: the reporter option `graceMs`. */
const GRACE_MS = 5_000

/** Mocha's spec report, then the skipped tests, how many they are and what makes them run, and as the very last line the counts that a CI reads. */
class CountingReporter extends Mocha.reporters.Spec {
  private readonly skipped: Mocha.Test[] = []
  private readonly graceMs: number

  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options)
    const { graceMs } = (options.reporterOptions ?? {}) as { graceMs?: string }
    this.graceMs = Number(graceMs ?? GRACE_MS)
    const print = process.stdout.write.bind(process.stdout)
    runner.on(EVENT_TEST_PENDING, (test) => this.skipped.push(test))
    // Only at the exit is it certain that neither a teardown nor a late log line comes after the counts.
    process.once('exit', () => print(this.summary()))
  }

  override done(failures: number, report?: (failures: number) => void): void {
    report?.(failures)
    setTimeout(endByForce, this.graceMs).unref()
  }

  private summary(): string {
    const { passes, failures, pending } = this.runner.stats ?? { passes: 0, failures: 0, pending: 0 }
    const skipped = this.skipped.map((test) => `SKIPPED: ${test.fullTitle()}: ${skipOf(test)?.reason ?? 'no reason given'}`)
    const notRun = pending === 0 ? [] : [`${pending} of ${passes + failures + pending} tests did not run.`, ...this.instructions()]
    const counts = `${passes} passed, ${failures} failed, ${pending} skipped`
    return [...skipped, ...notRun, counts].map((line) => `${line}\n`).join('')
  }

  private instructions(): string[] {
    const countOf = new Map<string, number>()
    for (const test of this.skipped) {
      const { toRunIt } = skipOf(test) ?? {}
      if (toRunIt !== undefined) countOf.set(toRunIt, (countOf.get(toRunIt) ?? 0) + 1)
    }
    return [...countOf].map(([toRunThem, count]) => `To run ${count} of them: ${toRunThem}.`)
  }
}

/** A run that leaves something open would never come to an end, nor to its counts. */
function endByForce(): void {
  console.error(`The tests are over, but something keeps the process open: ${process.getActiveResourcesInfo().join(', ')}`)
  // Mocha sets the exit code from the count of failures when the process exits; this comes after it.
  process.once('exit', () => {
    process.exitCode = 1
  })
  process.exit()
}

// Mocha loads a reporter with require(), which hands over the export of this name alone.
export { CountingReporter as 'module.exports' }
