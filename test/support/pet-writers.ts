import { setTimeout as sleep } from 'node:timers/promises'
import type { TestResponse } from './api.js'
import { findLink } from './responses.js'
import type { ServiceProcess } from './process.js'

/** One replica, or an object that distributes requests over several. */
export type PetService = Pick<ServiceProcess, 'send'>

export interface Written {
  readonly name: string
  /** Absent if the connection broke. */
  readonly response?: TestResponse
  readonly tookMs: number
  /** In terms of `performance.now()`. */
  readonly endMs: number
}

/**
 * Clients that add pets to a service until they are stopped. Each client waits for a response before its next request. Every pet has its
 * own name and idempotency key and is sent again until it is acknowledged. `pauseMs` is the time between two requests of a client.
 */
export class PetWriters {
  readonly written: Written[] = []
  #isStopped = false
  readonly #clients: Promise<void>[]

  /** You may replace `service` at any time. */
  constructor(
    public service: PetService,
    private readonly key: string,
    clients: number,
    private readonly pauseMs = 0,
  ) {
    this.#clients = Array.from({ length: clients }, (_, index) => this.#writeAll(`Writer ${index}`))
  }

  /** The number of responses with this status so far. */
  count(status: number): number {
    return this.written.filter(({ response }) => response?.status === status).length
  }

  get acknowledged(): Written[] {
    return this.written.filter(({ response }) => response?.status === 201)
  }

  /** Resolves when every client has received its last response. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#clients)
  }

  async #writeAll(client: string): Promise<void> {
    for (let count = 1; !this.#isStopped; count++) {
      const name = `${client}, pet ${count}`
      while (!this.#isStopped && !(await this.#write(name)));
    }
  }

  async #write(name: string): Promise<boolean> {
    const startMs = performance.now()
    const response = await postPet(this.service, this.key, name).catch(() => undefined)
    const endMs = performance.now()
    this.written.push({ name, ...(response ? { response } : {}), tookMs: endMs - startMs, endMs })
    if (this.pauseMs > 0) await sleep(this.pauseMs)
    return response?.status === 201
  }
}

/** Creates a pet with this name and an idempotency key that depends on it. */
export function postPet(service: PetService, key: string, name: string): Promise<TestResponse> {
  const body = { name, categoryId: 7 }
  return service.send('/v1/pets', { method: 'POST', key, body, headers: { 'idempotency-key': toIdempotencyKey(name) } })
}

export function toIdempotencyKey(name: string): string {
  return name.replaceAll(/\W/g, '-')
}

export interface ListedPet {
  readonly id: number
  readonly name: string
}

/** Lists all pets, page by page. */
export async function listAllPets(service: PetService, key: string, path = '/v1/pets?limit=100'): Promise<ListedPet[]> {
  const response = await service.send(path, { key })
  if (response.status !== 200) throw new Error(`${path} returned ${response.status}: ${response.text}`)
  const next = findLink('next', response)
  return [...(response.json as ListedPet[]), ...(next === undefined ? [] : await listAllPets(service, key, next))]
}
