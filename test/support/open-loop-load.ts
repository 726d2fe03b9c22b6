import { setTimeout as sleep } from 'node:timers/promises'
import type { Sent } from './api.js'
import { send } from './api.js'
import type { Hit } from './load-generator.js'

export interface Caller {
  readonly name: string
  readonly everyMs: number
  /** Returns the request with this number. Numbers start at 0. */
  readonly toRequest: (number: number) => Sent & { readonly path: string }
}

export interface CallerHit extends Hit {
  readonly caller: string
  readonly method: string
  /** When the request was due: a client that was busy does not hide the latency. */
  readonly startMs: number
}

/** Sends requests at fixed rates, whether or not earlier requests have responses. Each request has a new connection. */
export class OpenLoopLoad {
  readonly hits: CallerHit[] = []
  readonly #inFlight = new Set<Promise<void>>()
  #isStopped = false
  readonly #callers: Promise<void>[]

  constructor(
    private readonly url: string,
    callers: readonly Caller[],
  ) {
    this.#callers = callers.map((caller) => this.#run(caller))
  }

  /** Resolves when every request has its response. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#callers)
    await Promise.all(this.#inFlight)
  }

  async #run(caller: Caller): Promise<void> {
    // The callers do not send at the same time.
    const firstMs = performance.now() + Math.random() * caller.everyMs
    for (let number = 0; ; number += 1) {
      const dueMs = firstMs + number * caller.everyMs
      await sleep(Math.max(0, dueMs - performance.now()))
      if (this.#isStopped) return
      const request: Promise<void> = this.#send(caller, number, dueMs).finally(() => this.#inFlight.delete(request))
      this.#inFlight.add(request)
    }
  }

  async #send({ name, toRequest }: Caller, number: number, startMs: number): Promise<void> {
    const { path, ...sent } = toRequest(number)
    const response = await send(this.url, path, sent).catch(() => undefined)
    const { status, headers = {}, text: body = '' } = response ?? {}
    const outcome = { ...(status === undefined ? {} : { status }), headers, body }
    this.hits.push({ caller: name, method: sent.method ?? 'GET', url: this.url, ...outcome, startMs, endMs: performance.now() })
  }
}
