import type { Clock } from '../../core/ports/clock.js'
import type { IdempotencyRecord, IdempotencyScope, IdempotencyStore } from '../../core/ports/idempotency-store.js'
import { IDEMPOTENCY_MS } from '../../core/ports/idempotency-store.js'
import { ExpiringMap } from './expiring-map.js'

export class MemoryIdempotencyStore implements IdempotencyStore {
  readonly #records = new ExpiringMap<IdempotencyRecord>()

  constructor(private readonly clock: Clock) {}

  async claim({ keyId, idempotencyKey }: IdempotencyScope, offered: IdempotencyRecord): Promise<IdempotencyRecord> {
    const nowMs = this.clock.nowMs()
    const name = JSON.stringify([keyId, idempotencyKey])
    const there = this.#records.get(name, nowMs)
    if (!there) this.#records.set(name, offered, nowMs + IDEMPOTENCY_MS, nowMs)
    return there ?? offered
  }
}
