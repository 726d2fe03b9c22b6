/** There is no engine for the tests that need one; the message says why, to people. */
export class NoEngine extends Error {
  override readonly name = 'NoEngine'

  constructor(
    readonly reasons: readonly string[],
    options?: ErrorOptions,
  ) {
    super(reasons.join('; '), options)
  }
}

/** What the first attempt brings that does not find its engine missing; throws `NoEngine` with all reasons when each does. */
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
