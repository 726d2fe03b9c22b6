import type { Cancellation } from '../../core/cancellation.js'
import { LRUCache } from 'lru-cache'
import type { LimitFunction } from 'p-limit'
import pLimit from 'p-limit'
import type { ApiKey } from '../../core/api-key.js'
import { isValidSecret } from '../../core/api-key.js'
import { StoreUnavailable } from '../../core/errors.js'
import type { ApiKeySecrets } from '../../core/ports/api-key-secrets.js'
import type { ApiKeyStore } from '../../core/ports/api-key-store.js'
import type { ApiKeyVerifier, Verification } from '../../core/ports/api-key-verifier.js'
import type { Clock } from '../../core/ports/clock.js'
import type { FailedAuthentications } from '../../core/ports/failed-authentications.js'

/** Together with the longest query, 1.5 s, this stays within the 10 s that the port promises. */
const RECORD_TTL_MS = 8_000
const MAX_RECORDS = 10_000
const MAX_LOOKUPS_PER_ADDRESS = 4

/** The cached result of a lookup. Absence is cached too, so that sending one unknown key repeatedly costs one query. */
interface CachedRecord {
  readonly key: ApiKey | undefined
}

/** Limits the concurrent lookups of one IP address. Exists only while the IP address has lookups. */
interface LookupLimiter {
  readonly limit: LimitFunction
  /** In flight or waiting for a slot. */
  pendingLookups: number
  lastOutage?: StoreUnavailable
}

export class CachedApiKeyVerifier implements ApiKeyVerifier {
  readonly #records: LRUCache<string, CachedRecord>
  readonly #foundBefore = new LRUCache<string, true>({ max: MAX_RECORDS })
  readonly #limiters = new Map<string, LookupLimiter>()

  constructor(
    private readonly ports: {
      readonly secrets: ApiKeySecrets
      readonly apiKeyStore: ApiKeyStore
      readonly failedAuthentications: FailedAuthentications
      readonly clock: Clock
    },
  ) {
    const { apiKeyStore, clock } = ports
    this.#records = new LRUCache({
      max: MAX_RECORDS,
      ttl: RECORD_TTL_MS,
      ttlResolution: 0,
      perf: { now: () => clock.monotonicMs() },
      fetchMethod: async (secretHash) => ({ key: await apiKeyStore.findBySecretHash(secretHash) }),
      // A lookup whose entry is evicted while it is in flight still returns its result.
      ignoreFetchAbort: true,
    })
  }

  async verify(secret: string, address: string, signal?: Cancellation): Promise<Verification> {
    const secretHash = this.ports.secrets.hash(secret)
    if (secretHash === undefined) return this.#countFailure(address)
    return this.#verifyRecord(secretHash, this.#records.get(secretHash)) ?? this.#lookUpWithinLimit(secretHash, address, signal)
  }

  forget(secret: string): void {
    this.#records.delete(this.ports.secrets.hash(secret) ?? '')
  }

  /** If a lookup of the IP address fails with an outage, the lookups that wait for a slot fail with the same error. */
  async #lookUpWithinLimit(secretHash: string, address: string, signal?: Cancellation): Promise<Verification> {
    const limiter = this.#limiters.get(address) ?? { limit: pLimit(MAX_LOOKUPS_PER_ADDRESS), pendingLookups: 0 }
    this.#limiters.set(address, limiter)
    const { lastOutage } = limiter
    limiter.pendingLookups += 1
    try {
      return await limiter.limit(async () => {
        signal?.throwIfAborted()
        if (limiter.lastOutage && limiter.lastOutage !== lastOutage) throw limiter.lastOutage
        return this.#lookUp(secretHash, address, signal).catch((error: unknown) => {
          if (error instanceof StoreUnavailable && error !== signal?.reason) limiter.lastOutage = error
          throw error
        })
      })
    } finally {
      limiter.pendingLookups -= 1
      if (limiter.pendingLookups === 0) this.#limiters.delete(address)
    }
  }

  /**
   * Counts the failure before it frees the slot, so that the next lookup sees the count. This bounds the number of lookups beyond the failure
   * limit.
   */
  async #lookUp(secretHash: string, address: string, signal?: Cancellation): Promise<Verification> {
    if (!this.#foundBefore.has(secretHash)) {
      const quota = await this.ports.failedAuthentications.peek(address)
      if (quota.remaining === 0) return { kind: 'locked-out', quota }
    }
    signal?.throwIfAborted()
    const record = await this.#records.forceFetch(secretHash)
    if (record.key) this.#foundBefore.set(secretHash, true)
    return this.#verifyRecord(secretHash, record) ?? this.#countFailure(address)
  }

  async #countFailure(address: string): Promise<Verification> {
    const { admitted, quota } = await this.ports.failedAuthentications.count(address)
    return { kind: admitted ? 'invalid' : 'locked-out', quota }
  }

  /** Compares the record with the clock each time, because a cached key or its old secret may have expired since. */
  #verifyRecord(secretHash: string, { key }: Partial<CachedRecord> = {}): Verification | undefined {
    if (!key || !isValidSecret(key, secretHash, this.ports.clock.nowMs())) return undefined
    if (!key.oldSecret || secretHash === key.secretHash) return { kind: 'verified', key }
    return { kind: 'verified', key, secretExpiresAtMs: key.oldSecret.expiresAtMs }
  }
}
