import { InvalidArgumentError, Option } from 'commander'
import { PLAN_NAMES } from '../../core/plan.js'
import type { Limits } from '../../core/quota.js'
import { MAX_LIMIT } from '../../core/quota.js'

export const makePlanOption = (description: string) => new Option('--plan <plan>', description).choices(PLAN_NAMES)
export const makeMinuteOption = () =>
  new Option('--minute <n>', 'requests per minute instead of the limit of the plan; requires --day (enterprise: required)').argParser(
    parseLimit,
  )
export const makeDayOption = () =>
  new Option('--day <n>', 'requests per day instead of the limit of the plan; requires --minute (enterprise: required)').argParser(
    parseLimit,
  )
export const makeJsonOption = () => new Option('--json', 'print JSON for programs')

export const makeByOption = () =>
  new Option('--by <name>', 'the operator, for the history of the key (default: the system user)').argParser(parseName)

export interface LimitOptions {
  readonly minute?: number
  readonly day?: number
}

/** Returns the limits of the key if both options are set, and an empty object if neither is set. */
export function toLimits({ minute, day }: LimitOptions): { limits?: Limits } {
  if (minute === undefined && day === undefined) return {}
  if (minute === undefined || day === undefined) throw new InvalidArgumentError('Set both --minute and --day, or neither.')
  return { limits: { minute, day } }
}

export function parseLimit(text: string): number {
  return parseWholeNumber(text, { min: 1, max: MAX_LIMIT })
}

export function parseCount(text: string): number {
  return parseWholeNumber(text, { min: 0, max: 100_000_000 })
}

function parseWholeNumber(text: string, { min, max }: { min: number; max: number }): number {
  const value = Number(text)
  if (!/^\d{1,10}$/.test(text) || value < min || value > max)
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  return value
}

/** The names of owners and operators are printed in tables, so they must not contain characters that control the terminal or change the text direction. */
const FORBIDDEN_IN_NAME = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

export function parseName(text: string): string {
  const name = text.trim()
  if (name.length === 0 || [...name].length > 200 || FORBIDDEN_IN_NAME.test(name))
    throw new InvalidArgumentError('It must be 1 to 200 characters, without control characters.')
  return name
}

/** The error does not repeat the text, because someone may have passed the secret instead of the key ID. */
export function parseKeyId(text: string): string {
  if (text.startsWith('pst_')) throw new InvalidArgumentError('It must be a key ID (key_…) as printed by list, not the secret.')
  if (!/^[\w-]{1,100}$/.test(text)) throw new InvalidArgumentError('It must be a key ID (key_…) as printed by list.')
  return text
}

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const
/** The output of the commands supports only four-digit years. */
const YEAR_10000_MS = Date.UTC(10_000, 0, 1)
const ISO_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/

/** Parses a future time: a duration from now (`90d`, `12h`, `30m`), a date (`2027-01-01`: its start in UTC) or a time with a time zone. Returns Unix time in milliseconds. */
export function parseExpiry(text: string, nowMs: number): number {
  const ms = parseTime(text, (durationMs) => nowMs + durationMs)
  if (ms <= nowMs) throw new InvalidArgumentError('It must be in the future.')
  if (ms >= YEAR_10000_MS) throw new InvalidArgumentError('It must be before the year 10000.')
  return ms
}

/** Like `parseExpiry`, but a duration counts back from now. A time in the future is valid, too. */
export function parsePastTime(text: string, nowMs: number): number {
  return parseTime(text, (durationMs) => nowMs - durationMs)
}

/** Returns a duration (`7d`, `24h`, `30m` or `0`) in milliseconds. */
export function parseGrace(text: string): number {
  const ms = text === '0' ? 0 : parseDuration(text)
  if (ms === undefined) throw new InvalidArgumentError('It must be a duration such as 7d, 24h or 30m, or 0.')
  return ms
}

function parseDuration(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,5})([mhd])$/.exec(text) ?? []
  return unit ? Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS] : undefined
}

function parseTime(text: string, addToNow: (durationMs: number) => number): number {
  const durationMs = parseDuration(text)
  const ms = durationMs === undefined ? (ISO_TIME.test(text) ? Date.parse(text) : Number.NaN) : addToNow(durationMs)
  if (Number.isNaN(ms) || !isValidDate(text)) {
    throw new InvalidArgumentError(
      'It must be a duration such as 90d, 12h or 30m, a date such as 2027-01-31, or a time such as 2027-01-31T12:00Z.',
    )
  }
  return ms
}

/** Date.parse reads 2027-02-31 as 3 March. */
function isValidDate(text: string): boolean {
  const [date] = /^\d{4}-\d\d-\d\d/.exec(text) ?? []
  return date === undefined || new Date(`${date}T00:00:00Z`).toISOString().startsWith(date)
}
