import { skipFor } from '../skip.js'
import { NoEngine } from './no-engine.js'

const TO_RUN_THEM = 'start Docker, or set MONGODB_URL and REDIS_URL, or run as root on Debian without ENGINES=found-only'

/** For what a hook gets from an engine: it may take as long as setting one up takes. On `NoEngine` the tests are skipped, and `toRunThem` says what is missing. */
export async function withPatience<Outcome>(
  context: Mocha.Context,
  work: () => Promise<Outcome>,
  toRunThem = TO_RUN_THEM,
): Promise<Outcome> {
  const limitMs = context.timeout()
  const beganMs = performance.now()
  context.timeout(0)
  try {
    return await work()
  } catch (error) {
    if (error instanceof NoEngine) skipFor(context, error.message, toRunThem)
    throw error
  } finally {
    // Mocha compares its limit with all the time that the hook took.
    if (limitMs > 0) context.timeout(Math.ceil(performance.now() - beganMs) + limitMs)
  }
}
