import type { ApiKeyAction, ApiKeyValues } from '../../core/api-key-change.js'
import type { PlanName } from '../../core/plan.js'
import type { ApiKeyHistoryEntry } from '../../core/ports/api-key-history.js'
import type { Limits } from '../../core/quota.js'
import { formatTable, formatTime, toIso } from './key-report.js'

/** Times are ISO 8601 in UTC. Values that the change did not affect are absent. */
interface ValuesReport {
  readonly plan?: PlanName
  /** The key's own limits, not those of its plan. */
  readonly limits?: Limits
  readonly hint?: string
  readonly oldSecret?: { readonly hint: string; readonly expiresAt: string }
  readonly expiresAt?: string
  readonly revokedAt?: string
  readonly isBanned?: boolean
}

/** The JSON output for a change. */
export interface ChangeReport {
  readonly at: string
  readonly keyId: string
  readonly owner: string
  readonly by: string
  readonly action: ApiKeyAction
  readonly before: ValuesReport
  readonly after: ValuesReport
}

export function toChangeReport({ atMs, keyId, owner, by, action, before, after }: ApiKeyHistoryEntry): ChangeReport {
  return { at: toIso(atMs), keyId, owner, by, action, before: toValuesReport(before), after: toValuesReport(after) }
}

function toValuesReport({ plan, limits, hint, oldSecret, expiresAtMs, revokedAtMs, isBanned }: ApiKeyValues): ValuesReport {
  return {
    ...(plan === undefined ? {} : { plan }),
    ...(limits ? { limits: { minute: limits.minute, day: limits.day } } : {}),
    ...(hint === undefined ? {} : { hint }),
    ...(oldSecret ? { oldSecret: { hint: oldSecret.hint, expiresAt: toIso(oldSecret.expiresAtMs) } } : {}),
    ...(expiresAtMs === undefined ? {} : { expiresAt: toIso(expiresAtMs) }),
    ...(revokedAtMs === undefined ? {} : { revokedAt: toIso(revokedAtMs) }),
    ...(isBanned === undefined ? {} : { isBanned }),
  }
}

/** Formats changes as human-readable output. */
export function formatHistory(reports: readonly ChangeReport[]): string {
  if (reports.length === 0) return 'No change matches.\n'
  const rows = reports.map(({ at, keyId, owner, by, action, before, after }) => [
    `${at.slice(0, 19).replace('T', ' ')}Z`,
    keyId,
    owner,
    by,
    action,
    formatValues(before),
    formatValues(after),
  ])
  return formatTable(['TIME', 'KEY ID', 'OWNER', 'BY', 'CHANGE', 'BEFORE', 'AFTER'], rows)
}

function formatValues({ plan, limits, hint, oldSecret, expiresAt, revokedAt, isBanned }: ValuesReport): string {
  const parts = [
    plan,
    limits && `${limits.minute} per minute, ${limits.day} per day`,
    hint && `secret ${hint}`,
    oldSecret && `old secret ${oldSecret.hint} until ${formatTime(oldSecret.expiresAt)}`,
    expiresAt && `expires ${formatTime(expiresAt)}`,
    revokedAt && 'revoked',
    isBanned === undefined ? undefined : `${isBanned ? '' : 'not '}banned`,
  ]
  return parts.filter((part) => part !== undefined).join(', ') || '-'
}
