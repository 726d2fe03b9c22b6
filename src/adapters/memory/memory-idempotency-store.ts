import type { Clock } from '../../core/ports/clock.js'
import type { IdempotencyRecord, IdempotencyScope, IdempotencyStore } from '../../core/ports/idempotency-store.js'
import { IDEMPOTENCY_TTL_MS } from '../../core/ports/idempotency-store.js'
import { ExpiringMap } from './expiring-map.js'

export class MemoryIdempotencyStore implements IdempotencyStore {
  readonly #records = new ExpiringMap<IdempotencyRecord>()

  constructor(private readonly clock: Clock) {}

  async claim({ keyId, idempotencyKey }: IdempotencyScope, offered: IdempotencyRecord): Promise<IdempotencyRecord> {
    const nowMs = this.clock.nowMs()
    const scope = JSON.stringify([keyId, idempotencyKey])
    const existing = this.#records.get(scope, nowMs)
    if (!existing) this.#records.set(scope, offered, nowMs + IDEMPOTENCY_TTL_MS, nowMs)
    return existing ?? offered
  }
}
