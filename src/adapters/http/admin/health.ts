import type { RequestContext } from '../pipeline/context.js'
import { respondWithJson } from '../pipeline/respond-with-json.js'
import { HttpError } from '../errors/http-error.js'
import type { PublicRoute } from '../pipeline/routing.js'

/** A server that the process needs. */
export interface Dependency {
  readonly name: string
  /** Whether requests fail while it is down. */
  readonly required: boolean
  /** Never throws. Resolves to false if the dependency does not respond in time. */
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

/** Tells whether the process accepts traffic and which of its dependencies are up. */
export class Health {
  #phase: 'starting' | 'accepting' | 'draining' = 'starting'

  constructor(private readonly dependencies: readonly Dependency[]) {}

  /** Returns false and has no effect once the process is draining. */
  startAccepting(): boolean {
    if (this.#phase === 'starting') this.#phase = 'accepting'
    return this.#phase === 'accepting'
  }

  stopAccepting(): void {
    this.#phase = 'draining'
  }

  /**
   * Does no I/O and ignores dependencies. Otherwise, an outage of a shared dependency would remove all replicas from the load balancer at
   * once, and clients would get its errors instead of ours.
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
  const live = async (ctx: RequestContext) => respondWithJson(ctx, 200, '{"status":"ok"}')
  const ready = async (ctx: RequestContext) => {
    if (!health.isReady) throw new HttpError('service_unavailable', { headers: { 'Retry-After': '1' } })
    respondWithJson(ctx, 200, '{"status":"ok"}')
  }
  return [
    { path: '/livez', handle: live },
    { path: '/readyz', handle: ready },
  ]
}
