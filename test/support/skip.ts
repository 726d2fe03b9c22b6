import Mocha from 'mocha'

export interface Skip {
  readonly reason: string
  /** An instruction: how to make the test run. */
  readonly toRunIt: string | undefined
}

const skips = new WeakMap<object, Skip>()

/**
 * Skips the current test, or in a `before` hook every test of the suite. The report shows the reason.
 * With REQUIRE_ENGINES=1, which CI sets, the test fails instead.
 */
export function skipFor(context: Mocha.Context, reason: string, toRunIt?: string): never {
  if (process.env['REQUIRE_ENGINES'] === '1') throw new Error(`Skipped tests fail because of REQUIRE_ENGINES=1: ${reason}`)
  const runnable = context.runnable()
  skips.set(runnable instanceof Mocha.Test ? runnable : (runnable.parent ?? runnable), { reason, toRunIt })
  return context.skip()
}

export function getSkip(test: Mocha.Test): Skip | undefined {
  const owners: object[] = [test]
  for (let suite = test.parent; suite; suite = suite.parent) owners.push(suite)
  return owners.map((owner) => skips.get(owner)).find((skip) => skip !== undefined)
}
