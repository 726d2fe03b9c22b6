import type { StoredApiKey } from '../../core/api-key.js'
import type { PlanName } from '../../core/plan.js'
import type { QuotaUsage } from '../../core/quota.js'
import type { WindowName } from '../../core/window.js'
import { formatTable, toIso } from './key-report.js'

interface WindowReport {
  readonly limit: number
  readonly used: number
  readonly remaining: number
  /** ISO 8601 in UTC. */
  readonly resetAt: string
}

/** The JSON output of `petstore keys usage`. */
export interface UsageReport extends Readonly<Record<WindowName, WindowReport>> {
  readonly keyId: string
  readonly plan: PlanName
  /** In the current minute. */
  readonly strikes: number
  /** ISO 8601 in UTC. Absent if the key is not banned. */
  readonly bannedUntil?: string
  /** The number of consecutive bans. */
  readonly banLevel: number
}

export function toUsageReport({ keyId, plan }: StoredApiKey, { quota, used, strikes, bannedUntilMs, banLevel }: QuotaUsage): UsageReport {
  const toWindowReport = (name: WindowName): WindowReport => ({
    limit: quota[name].limit,
    used: used[name],
    remaining: quota[name].remaining,
    resetAt: toIso(quota[name].resetSeconds * 1000),
  })
  return {
    keyId,
    plan,
    minute: toWindowReport('minute'),
    day: toWindowReport('day'),
    strikes,
    ...(bannedUntilMs === undefined ? {} : { bannedUntil: toIso(bannedUntilMs) }),
    banLevel,
  }
}

/** Formats the human-readable output of `petstore keys usage`. */
export function formatUsage({ keyId, plan, minute, day, strikes, bannedUntil, banLevel }: UsageReport): string {
  const toRow = (name: WindowName, { limit, used, remaining, resetAt }: WindowReport) => [
    name,
    `${used}`,
    `${remaining}`,
    `${limit}`,
    resetAt,
  ]
  const ban = bannedUntil ? `banned until ${bannedUntil}, consecutive bans: ${banLevel}` : `not banned, strikes in this minute: ${strikes}`
  return `${keyId}, ${plan}: ${ban}\n\n${formatTable(['WINDOW', 'USED', 'REMAINING', 'LIMIT', 'RESETS'], [toRow('minute', minute), toRow('day', day)])}`
}
