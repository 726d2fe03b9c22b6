import Table from 'cli-table3'
import type { ApiKeyState, StoredApiKey } from '../../core/api-key.js'
import { stateOf } from '../../core/api-key.js'
import type { PlanName, Plans } from '../../core/plan.js'
import type { Limits } from '../../core/quota.js'

/** A key as `--json` prints it. Times are ISO 8601 in UTC; what is not there was not set. */
export interface KeyReport {
  readonly keyId: string
  /** Enough of the secret to recognise it by. */
  readonly hint: string
  readonly owner: string
  readonly plan: PlanName
  /** Those that hold for the key; absent where neither it nor its plan has any, and the service then serves it nothing. */
  readonly limits?: Limits
  /** Whether they are the key's own rather than its plan's. */
  readonly ownLimits: boolean
  readonly state: ApiKeyState
  readonly createdAt: string
  readonly expiresAt?: string
  readonly revokedAt?: string
  /** To the hour. */
  readonly lastUsedAt?: string
}

export function toKeyReport(key: StoredApiKey, plans: Plans, nowMs: number): KeyReport {
  const limits = key.limits ?? plans.plans[key.plan].limits
  return {
    keyId: key.keyId,
    hint: key.hint,
    owner: key.owner,
    plan: key.plan,
    ...(limits ? { limits: { minute: limits.minute, day: limits.day } } : {}),
    ownLimits: key.limits !== undefined,
    state: stateOf(key, nowMs),
    createdAt: toIso(key.createdAtMs),
    ...(key.expiresAtMs === undefined ? {} : { expiresAt: toIso(key.expiresAtMs) }),
    ...(key.revokedAtMs === undefined ? {} : { revokedAt: toIso(key.revokedAtMs) }),
    ...(key.lastUsedAtMs === undefined ? {} : { lastUsedAt: toIso(key.lastUsedAtMs) }),
  }
}

/** For people: one key, a line for each thing to know of it. */
export function keyLines(report: KeyReport): string {
  return table(
    [],
    [
      ['key id', report.keyId],
      ['hint', report.hint],
      ['owner', report.owner],
      ['plan', `${report.plan}, ${limitsText(report)}`],
      ['state', report.state],
      ['created', toMinuteText(report.createdAt)],
      ['expires', toMinuteText(report.expiresAt) || 'never'],
      ...(report.revokedAt ? [['revoked', toMinuteText(report.revokedAt)]] : []),
      ['last used', toMinuteText(report.lastUsedAt) || 'never'],
    ],
  )
}

/** For people: many keys, a line each. */
export function keyTable(reports: readonly KeyReport[], { isFiltered }: { readonly isFiltered: boolean }): string {
  if (reports.length === 0) return isFiltered ? 'No API key is like that.\n' : 'There are no API keys yet.\n'
  const rows = reports.map((report) => [
    report.keyId,
    report.hint,
    report.owner,
    report.plan,
    limitsText(report),
    report.state,
    toMinuteText(report.createdAt),
    toMinuteText(report.expiresAt) || 'never',
    toMinuteText(report.lastUsedAt) || 'never',
  ])
  return table(['KEY ID', 'HINT', 'OWNER', 'PLAN', 'LIMITS', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'], rows)
}

/** Columns side by side, without borders and colours, so that `grep` and `awk` read it too. */
export function table(head: string[], rows: string[][]): string {
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

function limitsText({ limits, ownLimits }: KeyReport): string {
  if (!limits) return 'no limits'
  return `${limits.minute} a minute, ${limits.day} a day${ownLimits ? ' (its own)' : ''}`
}

export function toIso(ms: number): string {
  return new Date(ms).toISOString()
}

/** `2026-11-21 08:30Z`, from ISO 8601 in UTC. */
function toMinuteText(iso: string | undefined): string {
  return iso === undefined ? '' : `${iso.slice(0, 16).replace('T', ' ')}Z`
}
