import type { TestResponse } from './api.js'
import { send } from './api.js'

export interface SentRequest {
  readonly method: 'GET' | 'POST'
  readonly key: string
  /** Absent if the connection failed. */
  readonly response?: TestResponse
  readonly startMs: number
  readonly endMs: number
}

/** Clients that list and add pets until they are stopped, each at a fixed rate. */
export class SteadyLoad {
  readonly requests: SentRequest[] = []
  #isStopped = false
  readonly #clients: Promise<void>[]

  /** Starts `clientsEach` clients per key. Every third request of a client is a POST. */
  constructor(
    private readonly url: string,
    keys: readonly string[],
    { clientsEach, everyMs }: { clientsEach: number; everyMs: number },
  ) {
    this.#clients = keys.flatMap((key) => Array.from({ length: clientsEach }, () => this.#sendUntilStopped(key, everyMs)))
  }

  /** Resolves when every client has received its last response. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#clients)
  }

  async #sendUntilStopped(key: string, everyMs: number): Promise<void> {
    for (let count = 1; !this.#isStopped; count += 1) {
      const method = count % 3 === 0 ? 'POST' : 'GET'
      const body = { name: 'Rex', categoryId: 7 }
      const startMs = performance.now()
      // Each request has a new connection: when nginx reloads, it closes the idle connections of clients, which may be sending on them.
      const response = await send(this.url, '/v1/pets', { method, key, ...(method === 'POST' ? { body } : {}) }).catch(() => undefined)
      const endMs = performance.now()
      this.requests.push({ method, key, ...(response ? { response } : {}), startMs, endMs })
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, everyMs - (endMs - startMs))))
    }
  }
}
