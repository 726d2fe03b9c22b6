import Table from 'cli-table3'
import type { ApiKeyState, OldSecret, StoredApiKey } from '../../core/api-key.js'
import { getApiKeyState, getValidOldSecret } from '../../core/api-key.js'
import type { PlanName, Plans } from '../../core/plan.js'
import type { Limits } from '../../core/quota.js'

/** The JSON output for a key. Times are ISO 8601 in UTC. Unset fields are absent. */
export interface KeyReport {
  readonly keyId: string
  /** Helps people recognize the key. */
  readonly hint: string
  readonly owner: string
  readonly plan: PlanName
  /** The limits of the key or its plan. Absent if neither has limits; the service then rejects the key. */
  readonly limits?: Limits
  /** Whether `limits` are the key's own, not those of its plan. */
  readonly ownLimits: boolean
  readonly state: ApiKeyState
  /** The secret that the last rotation replaced, while it is valid. */
  readonly oldSecret?: { readonly hint: string; readonly expiresAt: string; readonly lastUsedAt?: string }
  readonly createdAt: string
  readonly expiresAt?: string
  readonly revokedAt?: string
  /** Accurate to the hour. */
  readonly lastUsedAt?: string
}

export function toKeyReport(key: StoredApiKey, plans: Plans, nowMs: number): KeyReport {
  const oldSecret = getValidOldSecret(key, nowMs)
  const limits = key.limits ?? plans.plans[key.plan].limits
  return {
    keyId: key.keyId,
    hint: key.hint,
    owner: key.owner,
    plan: key.plan,
    ...(limits ? { limits: { minute: limits.minute, day: limits.day } } : {}),
    ownLimits: key.limits !== undefined,
    state: getApiKeyState(key, nowMs),
    ...(oldSecret ? { oldSecret: toOldSecretReport(oldSecret) } : {}),
    createdAt: toIso(key.createdAtMs),
    ...(key.expiresAtMs === undefined ? {} : { expiresAt: toIso(key.expiresAtMs) }),
    ...(key.revokedAtMs === undefined ? {} : { revokedAt: toIso(key.revokedAtMs) }),
    ...(key.lastUsedAtMs === undefined ? {} : { lastUsedAt: toIso(key.lastUsedAtMs) }),
  }
}

function toOldSecretReport({ hint, expiresAtMs, lastUsedAtMs }: OldSecret): NonNullable<KeyReport['oldSecret']> {
  return { hint, expiresAt: toIso(expiresAtMs), ...(lastUsedAtMs === undefined ? {} : { lastUsedAt: toIso(lastUsedAtMs) }) }
}

/** Formats one key as human-readable output. */
export function formatKey(report: KeyReport): string {
  return formatTable(
    [],
    [
      ['key ID', report.keyId],
      ['hint', report.hint],
      ['owner', report.owner],
      ['plan', `${report.plan}, ${formatLimits(report)}`],
      ['state', report.state],
      ...(report.oldSecret ? [['old secret', formatOldSecret(report.oldSecret)]] : []),
      ['created', formatTime(report.createdAt)],
      ['expires', formatTime(report.expiresAt) || 'never'],
      ...(report.revokedAt ? [['revoked', formatTime(report.revokedAt)]] : []),
      ['last used', formatTime(report.lastUsedAt) || 'never'],
    ],
  )
}

function formatOldSecret({ hint, expiresAt, lastUsedAt }: NonNullable<KeyReport['oldSecret']>): string {
  const use = lastUsedAt ? `last used ${formatTime(lastUsedAt)}` : 'not used since the rotation'
  return `${hint}, valid until ${formatTime(expiresAt)}, ${use}`
}

/** Formats a list of keys as human-readable output. */
export function formatKeys(reports: readonly KeyReport[], { isFiltered }: { readonly isFiltered: boolean }): string {
  if (reports.length === 0) return isFiltered ? 'No API key matches.\n' : 'There are no API keys yet.\n'
  const rows = reports.map((report) => [
    report.keyId,
    report.hint,
    report.owner,
    report.plan,
    formatLimits(report),
    report.state,
    formatTime(report.createdAt),
    formatTime(report.expiresAt) || 'never',
    formatTime(report.lastUsedAt) || 'never',
  ])
  return formatTable(['KEY ID', 'HINT', 'OWNER', 'PLAN', 'LIMITS', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'], rows)
}

/** Formats columns without borders and colors, so that `grep` and `awk` can process the output. */
export function formatTable(head: string[], rows: string[][]): string {
  const none = {
    top: '',
    'top-mid': '',
    'top-left': '',
    'top-right': '',
    bottom: '',
    'bottom-mid': '',
    'bottom-left': '',
    'bottom-right': '',
  }
  const chars = { ...none, left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' }
  const lines = new Table({ head, chars, style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 } })
  lines.push(...rows)
  return `${lines.toString().replace(/ +$/gm, '')}\n`
}

function formatLimits({ limits, ownLimits }: KeyReport): string {
  if (!limits) return 'no limits'
  return `${limits.minute} per minute, ${limits.day} per day${ownLimits ? ' (custom)' : ''}`
}

export function toIso(ms: number): string {
  return new Date(ms).toISOString()
}

/** Formats ISO 8601 in UTC as `2026-11-21 08:30Z`. */
export function formatTime(iso: string | undefined): string {
  return iso === undefined ? '' : `${iso.slice(0, 16).replace('T', ' ')}Z`
}
