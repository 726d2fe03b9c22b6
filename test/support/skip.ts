import Mocha from 'mocha'

export interface Skip {
  readonly reason: string
  /** What makes the test run, as an instruction. */
  readonly toRunIt: string | undefined
}

const skips = new WeakMap<object, Skip>()

/**
 * Skips the running test, or every test of the suite when called in a `before` hook, and lets the report say why.
 * With REQUIRE_ENGINES=1, which CI sets, what is missing is a failure instead.
 */
export function skipFor(context: Mocha.Context, reason: string, toRunIt?: string): never {
  if (process.env['REQUIRE_ENGINES'] === '1') throw new Error(`REQUIRE_ENGINES=1 allows no skipped test, and this one would be: ${reason}`)
  const runnable = context.runnable()
  skips.set(runnable instanceof Mocha.Test ? runnable : (runnable.parent ?? runnable), { reason, toRunIt })
  return context.skip()
}

export function skipOf(test: Mocha.Test): Skip | undefined {
  const owners: object[] = [test]
  for (let suite = test.parent; suite; suite = suite.parent) owners.push(suite)
  return owners.map((owner) => skips.get(owner)).find((skip) => skip !== undefined)
}
