import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/ports/clock.js'
import type { StaleKeyRecord } from '../../core/ports/quota-store.js'
import type { UsageReader } from '../../core/ports/usage-reader.js'
import type { KeyVersion, QuotaRules, QuotaUsage } from '../../core/quota.js'

const CACHED_MS = 1_000
const MAX_KEYS = 10_000

interface CachedUsage {
  readonly usage: QuotaUsage | StaleKeyRecord
  readonly readAtMs: number
}

/**
 * Reads the usage of a key from its store at most once per second, so that polling it costs nothing. Reads at the same time share one call.
 * Does not return a window or a ban that has ended.
 */
export class CachedUsageReader implements UsageReader {
  /** By key and version of its record. */
  readonly #usages: LRUCache<string, CachedUsage, Parameters<UsageReader['readUsage']>>

  constructor(
    reader: UsageReader,
    private readonly clock: Clock,
  ) {
    this.#usages = new LRUCache({
      max: MAX_KEYS,
      ttl: CACHED_MS,
      ttlResolution: 0,
      perf: { now: () => clock.monotonicMs() },
      fetchMethod: async (_name, _stale, { context, options }) => {
        const usage = await reader.readUsage(...context)
        if (!('kind' in usage)) options.ttl = toTtlMs(Math.min(CACHED_MS, getValidMs(usage)))
        return { usage, readAtMs: clock.monotonicMs() }
      },
      // A read whose entry is evicted while it is in flight still returns its result.
      ignoreFetchAbort: true,
    })
  }

  async readUsage(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<QuotaUsage | StaleKeyRecord> {
    // A record that was read again must not be called stale because of an earlier read.
    const forceRefresh = keyVersion.readSince !== undefined
    const context: Parameters<UsageReader['readUsage']> = [keyId, rules, keyVersion]
    const { usage, readAtMs } = await this.#usages.forceFetch(`${keyId} ${keyVersion.version}`, { context, forceRefresh })
    if ('kind' in usage) return usage
    const { quota } = usage
    // Headers state how long a window still lasts, so the time continues although the usage does not change.
    return { ...usage, quota: { ...quota, nowMs: quota.nowMs + this.clock.monotonicMs() - readAtMs } }
  }
}

/** An entry whose age equals its time to live is still returned, and 0 means no limit. */
function toTtlMs(validMs: number): number {
  return Math.max(0.5, validMs - 0.5)
}

/** The time until a window or the ban ends. */
function getValidMs({ quota, windows, bannedUntilMs = Infinity }: QuotaUsage): number {
  return Math.min(windows.minute.resetSeconds * 1000, windows.day.resetSeconds * 1000, bannedUntilMs) - quota.nowMs
}
