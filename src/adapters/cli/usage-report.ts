import type { StoredApiKey } from '../../core/api-key.js'
import type { PlanName } from '../../core/plan.js'
import type { QuotaUsage } from '../../core/quota.js'
import type { WindowName } from '../../core/window.js'
import { toIso, table } from './key-report.js'

interface WindowReport {
  readonly limit: number
  readonly used: number
  readonly remaining: number
  /** ISO 8601 in UTC. */
  readonly resetAt: string
}

/** What `--json` prints. */
export interface UsageReport extends Readonly<Record<WindowName, WindowReport>> {
  readonly keyId: string
  readonly plan: PlanName
  /** Of the current minute. */
  readonly strikes: number
  /** ISO 8601 in UTC; absent when no ban holds. */
  readonly bannedUntil?: string
  /** Bans in a row. */
  readonly banLevel: number
}

export function toUsageReport({ keyId, plan }: StoredApiKey, { quota, used, strikes, bannedUntilMs, banLevel }: QuotaUsage): UsageReport {
  const windowReport = (name: WindowName): WindowReport => ({
    limit: quota[name].limit,
    used: used[name],
    remaining: quota[name].remaining,
    resetAt: toIso(quota[name].resetSeconds * 1000),
  })
  return {
    keyId,
    plan,
    minute: windowReport('minute'),
    day: windowReport('day'),
    strikes,
    ...(bannedUntilMs === undefined ? {} : { bannedUntil: toIso(bannedUntilMs) }),
    banLevel,
  }
}

/** For people. */
export function usageLines({ keyId, plan, minute, day, strikes, bannedUntil, banLevel }: UsageReport): string {
  const row = (name: WindowName, { limit, used, remaining, resetAt }: WindowReport) => [
    name,
    `${used}`,
    `${remaining}`,
    `${limit}`,
    resetAt,
  ]
  const ban = bannedUntil ? `banned until ${bannedUntil}, ${banLevel} in a row` : `not banned, ${strikes} strikes in this minute`
  return `${keyId}, ${plan}: ${ban}\n\n${table(['WINDOW', 'USED', 'LEFT', 'LIMIT', 'RESETS'], [row('minute', minute), row('day', day)])}`
}
