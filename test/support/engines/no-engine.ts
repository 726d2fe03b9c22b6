/** This machine has no engine for the tests that need one, and none can be set up: they are skipped. The message says why. */
export class NoEngine extends Error {
  override readonly name = 'NoEngine'

  constructor(
    readonly reasons: readonly string[],
    options?: ErrorOptions,
  ) {
    super(reasons.join('; '), options)
  }
}

/** An engine that the environment names, or that this machine has or could set up, does not start: the tests that need it fail. */
export class EngineFailed extends Error {
  override readonly name = 'EngineFailed'
}

/** The outcome of the first attempt that does not throw `NoEngine`; throws `NoEngine` with all reasons when each attempt does. */
export async function firstOf<Engine>(attempts: readonly (() => Promise<Engine>)[]): Promise<Engine> {
  const reasons = new Set<string>()
  for (const attempt of attempts) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof NoEngine)) throw error
      for (const reason of error.reasons) reasons.add(reason)
    }
  }
  throw new NoEngine([...reasons])
}
