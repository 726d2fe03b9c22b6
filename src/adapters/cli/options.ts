import { InvalidArgumentError, Option } from 'commander'
import { PLAN_NAMES } from '../../core/plan.js'
import { MAX_LIMIT } from '../../core/quota.js'

export const planOption = (description: string) => new Option('--plan <plan>', description).choices(PLAN_NAMES)
export const minuteOption = () =>
  new Option('--minute <n>', "requests a minute, instead of the plan's; with --day (enterprise: required)").argParser(parseLimit)
export const dayOption = () =>
  new Option('--day <n>', "requests a day, instead of the plan's; with --minute (enterprise: required)").argParser(parseLimit)
export const jsonOption = () => new Option('--json', 'print JSON, for programs')

/** The limits of a key's own; both or none. */
export function ownLimits({ minute, day }: { minute?: number; day?: number }): { limits?: { minute: number; day: number } } {
  if (minute === undefined && day === undefined) return {}
  if (minute === undefined || day === undefined) throw new InvalidArgumentError('--minute and --day go together: give both or neither')
  return { limits: { minute, day } }
}

function parseLimit(text: string): number {
  return wholeNumber(text, { min: 1, max: MAX_LIMIT })
}

export function parseCount(text: string): number {
  return wholeNumber(text, { min: 0, max: 100_000_000 })
}

function wholeNumber(text: string, { min, max }: { min: number; max: number }): number {
  const value = Number(text)
  if (!/^\d{1,10}$/.test(text) || value < min || value > max)
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  return value
}

/** Ends up in tables: nothing may reach the terminal that controls it or turns a line around. */
const UNFIT_FOR_AN_OWNER = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

export function parseOwner(text: string): string {
  const owner = text.trim()
  if (owner.length === 0 || [...owner].length > 200 || UNFIT_FOR_AN_OWNER.test(owner))
    throw new InvalidArgumentError('It must be 1 to 200 characters, without control characters.')
  return owner
}

/** Throws without repeating the text: it may be the secret, given where the id belongs. */
export function parseKeyId(text: string): string {
  if (text.startsWith('pst_')) throw new InvalidArgumentError('It must be the id of a key, key_…, as list shows it, and not its secret.')
  if (!/^[\w-]{1,100}$/.test(text)) throw new InvalidArgumentError('It must be the id of a key, key_…, as list shows it.')
  return text
}

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const
/** The first instant whose year has five digits. */
const YEAR_10000_MS = Date.UTC(10_000, 0, 1)
const ISO_INSTANT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/

/** Reads a time to come: a span from now (`90d`, `12h`, `30m`), a day (`2027-01-01`, its first instant in UTC) or an instant with its zone. */
export function parseExpiry(text: string, nowMs: number): number {
  const [, count, unit] = /^(\d{1,5})([mhd])$/.exec(text) ?? []
  const ms = unit ? nowMs + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS] : ISO_INSTANT.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms) || !isRealDay(text)) {
    throw new InvalidArgumentError(
      'It must be a span such as 90d, 12h or 30m, a day such as 2027-01-31, or an instant such as 2027-01-31T12:00Z.',
    )
  }
  if (ms <= nowMs) throw new InvalidArgumentError('It must lie in the future.')
  if (ms >= YEAR_10000_MS) throw new InvalidArgumentError('It must lie before the year 10000.')
  return ms
}

/** Date.parse takes 2027-02-31 for the third of March. */
function isRealDay(text: string): boolean {
  const [day] = /^\d{4}-\d\d-\d\d/.exec(text) ?? []
  return day === undefined || new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}
