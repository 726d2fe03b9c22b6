import type { Middleware } from './context.js'
import { answerJson } from './context.js'
import { HttpError } from './http-error.js'
import type { ServicePage } from './routes.js'

/** Something outside this process that the service leans on. */
export interface Dependency {
  readonly name: string
  /** False: without it the service still answers in full, or in a reduced way that it tells of. */
  readonly required: boolean
  /** Never throws; a dependency that cannot be asked in time is not up. */
  isUp(): Promise<boolean>
}

export interface HealthDetails {
  readonly ready: boolean
  /** False while starting and draining. */
  readonly accepting: boolean
  readonly uptimeSeconds: number
  readonly dependencies: Readonly<Record<string, 'up' | 'down'>>
}

/** Whether the process may be given traffic. */
export class Health {
  #phase: 'starting' | 'accepting' | 'draining' = 'starting'

  constructor(private readonly dependencies: readonly Dependency[]) {}

  /** False, and without effect, once the process is draining. */
  startAccepting(): boolean {
    if (this.#phase === 'starting') this.#phase = 'accepting'
    return this.#phase === 'accepting'
  }

  stopAccepting(): void {
    this.#phase = 'draining'
  }

  async isReady(): Promise<boolean> {
    return this.#isAccepting && (await statesOf(this.dependencies.filter(({ required }) => required))).every(({ up }) => up)
  }

  /** For the operator: never on the API port. */
  async details(): Promise<HealthDetails> {
    const states = await statesOf(this.dependencies)
    return {
      ready: this.#isAccepting && states.every(({ required, up }) => up || !required),
      accepting: this.#isAccepting,
      uptimeSeconds: Math.floor(process.uptime()),
      dependencies: Object.fromEntries(states.map(({ name, up }) => [name, up ? 'up' : 'down'] as const)),
    }
  }

  get #isAccepting(): boolean {
    return this.#phase === 'accepting'
  }
}

async function statesOf(dependencies: readonly Dependency[]): Promise<{ name: string; required: boolean; up: boolean }[]> {
  return Promise.all(
    dependencies.map(async (dependency) => ({ name: dependency.name, required: dependency.required, up: await dependency.isUp() })),
  )
}

/** `/livez`: the process runs. `/readyz`: it may be given traffic. Neither says more. */
export function healthPages(health: Health): ServicePage[] {
  const live: Middleware = async (ctx) => answerJson(ctx, 200, '{"status":"ok"}')
  const ready: Middleware = async (ctx) => {
    if (!(await health.isReady())) throw new HttpError('service_unavailable', { headers: { 'Retry-After': '1' } })
    answerJson(ctx, 200, '{"status":"ok"}')
  }
  return [
    { path: '/livez', handle: live },
    { path: '/readyz', handle: ready },
  ]
}
