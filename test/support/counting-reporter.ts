import Mocha from 'mocha'
import { skipReason } from './skip.js'

const { EVENT_TEST_PENDING } = Mocha.Runner.constants

/** How long after the last test the process may stay open before it is ended by force: the reporter option `graceMs`. */
const GRACE_MS = 5_000

/** Mocha's spec report, then the skipped tests by name, and as the very last line the counts that a CI reads. */
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
    const skipped = this.skipped.map((test) => `SKIPPED: ${test.fullTitle()}: ${skipReason(test) ?? 'no reason given'}`)
    return [...skipped, `${passes} passed, ${failures} failed, ${pending} skipped`].map((line) => `${line}\n`).join('')
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
