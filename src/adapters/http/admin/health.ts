import type { RequestContext } from '../pipeline/context.js'
import { respondWithJson } from '../pipeline/respond-with-json.js'
import { HttpError } from '../errors/http-error.js'
import type { PublicRoute } from '../pipeline/routing.js'

/** A server that the process needs. */
export interface Dependency {
  readonly name: string
  /** Whether requests fail while it is down. */
  readonly isRequired: boolean
  /** Never throws. Resolves to false if the dependency does not respond in time. */
  isUp(): Promise<boolean>
}

/** Tracks whether the process accepts traffic, and checks which of its dependencies are up. */
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

  get isDraining(): boolean {
    return this.#phase === 'draining'
  }

  /**
   * Does no I/O and ignores dependencies. Otherwise, an outage of a shared dependency would remove all replicas from the load balancer at
   * once, and clients would get its errors instead of ours.
   */
  get isReady(): boolean {
    return this.#phase === 'accepting'
  }

  /**
   * For operators, and never on the API port. Checks every dependency. `status` is `ok` if the process accepts traffic and all required
   * dependencies are up. `ready` is the result of `/readyz`.
   */
  async check() {
    const states = await Promise.all(this.dependencies.map(async (dependency) => ({ dependency, isUp: await dependency.isUp() })))
    const isOk = this.isReady && states.every(({ dependency, isUp }) => isUp || !dependency.isRequired)
    return {
      status: isOk ? 'ok' : 'failing',
      ready: this.isReady,
      uptimeSeconds: Math.floor(process.uptime()),
      dependencies: Object.fromEntries(states.map(({ dependency, isUp }) => [dependency.name, isUp ? 'up' : 'down'] as const)),
    }
  }
}

/** `/livez`: the process is running. `/readyz`: it accepts traffic. Neither does I/O. */
export function makeHealthRoutes(health: Health): PublicRoute[] {
  const respondOk = async (ctx: RequestContext) => respondWithJson(ctx, 200, '{"status":"ok"}')
  const ready = async (ctx: RequestContext) => {
    if (!health.isReady) throw new HttpError('service_unavailable', { headers: { 'Retry-After': '1' } })
    await respondOk(ctx)
  }
  return [
    { path: '/livez', handle: respondOk },
    { path: '/readyz', handle: ready },
  ]
}
