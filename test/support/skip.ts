import Mocha from 'mocha'

const reasons = new WeakMap<object, string>()

/**
 * Leaves out the running test, or every test of the suite when called in a `before` hook, and lets the report say why.
 * With REQUIRE_ENGINES=1, which CI sets, what is missing is a failure instead.
 */
export function skipFor(context: Mocha.Context, reason: string): never {
  if (process.env['REQUIRE_ENGINES'] === '1') throw new Error(`REQUIRE_ENGINES=1 allows no skipped test, and this one would be: ${reason}`)
  const runnable = context.runnable()
  reasons.set(runnable instanceof Mocha.Test ? runnable : (runnable.parent ?? runnable), reason)
  return context.skip()
}

export function skipReason(test: Mocha.Test): string | undefined {
  const owners: object[] = [test]
  for (let suite = test.parent; suite; suite = suite.parent) owners.push(suite)
  return owners.map((owner) => reasons.get(owner)).find((reason) => reason !== undefined)
}
