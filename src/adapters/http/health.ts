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
  #accepting = false

  constructor(private readonly dependencies: readonly Dependency[]) {}

  startAccepting(): void {
    this.#accepting = true
  }

  stopAccepting(): void {
    this.#accepting = false
  }

  async isReady(): Promise<boolean> {
    const required = this.dependencies.filter((dependency) => dependency.required)
    const up = await Promise.all(required.map((dependency) => dependency.isUp()))
    return this.#accepting && up.every(Boolean)
  }

  /** For the operator: never on the API port. */
  async details(): Promise<HealthDetails> {
    const states = await Promise.all(
      this.dependencies.map(async (dependency) => [dependency.name, (await dependency.isUp()) ? 'up' : 'down'] as const),
    )
    return {
      ready: await this.isReady(),
      accepting: this.#accepting,
      uptimeSeconds: Math.floor(process.uptime()),
      dependencies: Object.fromEntries(states),
    }
  }
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
