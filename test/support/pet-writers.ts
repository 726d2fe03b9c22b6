import type { TestResponse } from './api.js'
import { findLink } from './responses.js'
import type { ServiceProcess } from './process.js'

export interface Written {
  readonly name: string
  /** Absent where the connection broke instead. */
  readonly answer?: TestResponse
  readonly tookMs: number
  /** On the clock of `performance.now()`. */
  readonly endMs: number
}

/**
 * Clients that add pets to a service, each its next one as soon as it has an answer, until they are told to stop. Every pet has a
 * name and an idempotency key of its own, and is sent again until it is acknowledged.
 */
export class PetWriters {
  readonly written: Written[] = []
  #isStopped = false
  readonly #clients: Promise<void>[]

  /** `service` may be exchanged for another one at any time. */
  constructor(
    public service: ServiceProcess,
    private readonly key: string,
    clients: number,
  ) {
    this.#clients = Array.from({ length: clients }, (_, index) => this.#writeAll(`Writer ${index}`))
  }

  /** TestResponses with this status so far. */
  count(status: number): number {
    return this.written.filter(({ answer }) => answer?.status === status).length
  }

  get acknowledged(): Written[] {
    return this.written.filter(({ answer }) => answer?.status === 201)
  }

  /** Resolves when every client has the answer to its last request. */
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
    const beganMs = performance.now()
    const answer = await postPet(this.service, this.key, name).catch(() => undefined)
    const endMs = performance.now()
    this.written.push({ name, ...(answer ? { answer } : {}), tookMs: endMs - beganMs, endMs })
    return answer?.status === 201
  }
}

/** A pet of this name, under an idempotency key that follows from it. */
export function postPet(service: ServiceProcess, key: string, name: string): Promise<TestResponse> {
  const body = { name, categoryId: 7 }
  return service.send('/v1/pets', { method: 'POST', key, body, headers: { 'idempotency-key': idempotencyKeyOf(name) } })
}

export function idempotencyKeyOf(name: string): string {
  return name.replaceAll(/\W/g, '-')
}

export interface ListedPet {
  readonly id: number
  readonly name: string
}

/** All pets, page by page. */
export async function allPets(service: ServiceProcess, key: string, path = '/v1/pets?limit=100'): Promise<ListedPet[]> {
  const answer = await service.send(path, { key })
  if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}: ${answer.text}`)
  const next = findLink('next', answer)
  return [...(answer.json as ListedPet[]), ...(next === undefined ? [] : await allPets(service, key, next))]
}
