import type { StoredApiKey } from '../../core/api-key.js'
import type { KeyUsage, WindowReport } from '../../core/key-usage.js'
import { toKeyUsage } from '../../core/key-usage.js'
import type { QuotaUsage } from '../../core/quota.js'
import { formatTable } from './key-report.js'

/** The JSON output of `petstore keys usage`: what `GET /v1/usage` returns, and details for operators. */
export interface UsageReport extends KeyUsage {
  readonly keyId: string
  /** In the current minute. */
  readonly strikes: number
  /** The number of consecutive bans. */
  readonly banLevel: number
}

export function toUsageReport(key: StoredApiKey, usage: QuotaUsage): UsageReport {
  return { keyId: key.keyId, ...toKeyUsage(key, usage), strikes: usage.strikes, banLevel: usage.banLevel }
}

/** Formats the human-readable output of `petstore keys usage`. */
export function formatUsage({ keyId, plan, minute, day, ban, strikes, banLevel }: UsageReport): string {
  const toRow = (name: string, { limit, used, remaining, resetsAt }: WindowReport) => [
    name,
    `${used}`,
    `${remaining}`,
    `${limit}`,
    resetsAt,
  ]
  const status = ban ? `banned until ${ban.endsAt}, consecutive bans: ${banLevel}` : `not banned, strikes in this minute: ${strikes}`
  return `${keyId}, ${plan}: ${status}\n\n${formatTable(['WINDOW', 'USED', 'REMAINING', 'LIMIT', 'RESETS'], [toRow('minute', minute), toRow('day', day)])}`
}
