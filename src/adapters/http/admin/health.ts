import type { Middleware } from '../pipeline/context.js'
import { respondWithJson } from '../pipeline/context.js'
import { HttpError } from '../errors/http-error.js'
import type { PublicRoute } from '../pipeline/routing.js'

/** Something outside this process that the service leans on. */
export interface Dependency {
  readonly name: string
  /** Without it requests fail; without any other the service still serves all of them. */
  readonly required: boolean
  /** Never throws; a dependency that cannot be asked in time is not up. */
  isUp(): Promise<boolean>
}

export interface HealthDetails {
  /** `ok` if the process accepts traffic and all required dependencies are up. */
  readonly status: 'ok' | 'failing'
  /** The result of `/readyz`: false only while the process starts and drains. */
  readonly ready: boolean
  readonly uptimeSeconds: number
  readonly dependencies: Readonly<Record<string, 'up' | 'down'>>
}

/** Whether the process accepts traffic, and what state its dependencies are in. */
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

  /**
   * Does no I/O and does not depend on dependencies: an outage of one that all replicas share would otherwise remove all of them from the
   * load balancer at once, and clients would get its errors instead of ours.
   */
  get isReady(): boolean {
    return this.#phase === 'accepting'
  }

  /** For operators, and never on the API port. Checks every dependency. */
  async details(): Promise<HealthDetails> {
    const states = await checkAll(this.dependencies)
    const isOk = this.isReady && states.every(({ required, up }) => up || !required)
    return {
      status: isOk ? 'ok' : 'failing',
      ready: this.isReady,
      uptimeSeconds: Math.floor(process.uptime()),
      dependencies: Object.fromEntries(states.map(({ name, up }) => [name, up ? 'up' : 'down'] as const)),
    }
  }
}

async function checkAll(dependencies: readonly Dependency[]): Promise<{ name: string; required: boolean; up: boolean }[]> {
  return Promise.all(
    dependencies.map(async (dependency) => ({ name: dependency.name, required: dependency.required, up: await dependency.isUp() })),
  )
}

/** `/livez`: the process is running. `/readyz`: it accepts traffic. Neither does I/O. */
export function healthRoutes(health: Health): PublicRoute[] {
  const live: Middleware = async (ctx) => respondWithJson(ctx, 200, '{"status":"ok"}')
  const ready: Middleware = async (ctx) => {
    if (!health.isReady) throw new HttpError('service_unavailable', { headers: { 'Retry-After': '1' } })
    respondWithJson(ctx, 200, '{"status":"ok"}')
  }
  return [
    { path: '/livez', handle: live },
    { path: '/readyz', handle: ready },
  ]
}
