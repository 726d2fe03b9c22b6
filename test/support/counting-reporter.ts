import Mocha from 'mocha'
import { getSkip } from './skip.js'

const { EVENT_TEST_PENDING } = Mocha.Runner.constants

/** If something keeps the process open for this long after the last test, the process exits with an error. Reporter option: `graceMs`. */
const GRACE_MS = 5_000

/**
 * Prints Mocha's spec report, then the skipped tests, their number and how to run them. The very last line contains the counts of the
 * runner, for CI.
 */
class CountingReporter extends Mocha.reporters.Spec {
  private readonly skipped: Mocha.Test[] = []
  private readonly graceMs: number

  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options)
    const { graceMs } = (options.reporterOptions ?? {}) as { graceMs?: string }
    this.graceMs = Number(graceMs ?? GRACE_MS)
    const print = process.stdout.write.bind(process.stdout)
    runner.on(EVENT_TEST_PENDING, (test) => this.skipped.push(test))
    // Before the exit, a teardown or a late log line could still print something after the counts.
    process.once('exit', () => print(this.summary()))
  }

  override done(failures: number, report?: (failures: number) => void): void {
    report?.(failures)
    setTimeout(forceExit, this.graceMs).unref()
  }

  private summary(): string {
    const { passes, failures, pending } = this.runner.stats ?? { passes: 0, failures: 0, pending: 0 }
    const skipped = this.skipped.map((test) => `SKIPPED: ${test.fullTitle()}: ${getSkip(test)?.reason ?? 'no reason given'}`)
    const notRun = pending === 0 ? [] : [`${pending} of ${passes + failures + pending} tests did not run.`, ...this.instructions()]
    const counts = `${passes} passed, ${failures} failed, ${pending} skipped`
    return [...skipped, ...notRun, counts].map((line) => `${line}\n`).join('')
  }

  private instructions(): string[] {
    const testsByInstruction = new Map<string, number>()
    for (const test of this.skipped) {
      const { toRunIt } = getSkip(test) ?? {}
      if (toRunIt !== undefined) testsByInstruction.set(toRunIt, (testsByInstruction.get(toRunIt) ?? 0) + 1)
    }
    return [...testsByInstruction].map(([toRunThem, count]) => `To run ${count} of them: ${toRunThem}.`)
  }
}

/** Otherwise a process with an open handle would never exit and never print the counts. */
function forceExit(): void {
  console.error(`The tests are done, but something keeps the process open: ${process.getActiveResourcesInfo().join(', ')}`)
  // Mocha sets the exit code in its own exit listener. This one runs after it.
  process.once('exit', () => {
    process.exitCode = 1
  })
  process.exit()
}

// Mocha loads a reporter with require(), which returns only the export with this name.
export { CountingReporter as 'module.exports' }
