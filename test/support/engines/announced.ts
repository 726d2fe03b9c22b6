/** Says on standard error what is going on, and how long it took; stdout belongs to the report. */
export async function announced<Outcome>(what: string, usually: string, work: () => Promise<Outcome>): Promise<Outcome> {
  console.error(`Engines: ${what} (usually takes ${usually})`)
  const beganMs = performance.now()
  try {
    const outcome = await work()
    console.error(`Engines: ${what}: done in ${secondsSince(beganMs)}`)
    return outcome
  } catch (error) {
    const [reason] = String(error).split('\n')
    console.error(`Engines: ${what}: failed after ${secondsSince(beganMs)}: ${reason}`)
    throw error
  }
}

export function secondsSince(beganMs: number): string {
  return `${((performance.now() - beganMs) / 1_000).toFixed(1)} s`
}

const engines = new Set<string>()

/** Once per engine and run. */
export function announceEngine(name: string, how: string, took?: string): void {
  const engine = `Engine: ${name} from ${how}`
  if (engines.has(engine)) return
  engines.add(engine)
  console.error(took === undefined ? engine : `${engine}, started in ${took}`)
}
