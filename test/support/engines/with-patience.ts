import { skipFor } from '../skip.js'
import { NoEngine } from './no-engine.js'

/** For what a hook gets from an engine: it may take as long as setting one up takes, and where there is none the tests are left out. */
export async function withPatience<Outcome>(context: Mocha.Context, work: () => Promise<Outcome>): Promise<Outcome> {
  const limitMs = context.timeout()
  const beganMs = performance.now()
  context.timeout(0)
  try {
    return await work()
  } catch (error) {
    if (error instanceof NoEngine) skipFor(context, error.message)
    throw error
  } finally {
    // Mocha compares its limit with all the time that the hook took.
    if (limitMs > 0) context.timeout(Math.ceil(performance.now() - beganMs) + limitMs)
  }
}
