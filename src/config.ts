import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Plans } from './core/plan.js'
import { isLikelyTypo } from './likely-typo.js'
import { parsePlans } from './plans-file.js'
import type { LOG_LEVELS, SettingName, SettingValues } from './settings.js'
import { getSetting, SETTING_NAMES } from './settings.js'

/** The storage that all replicas share. Both URLs may contain passwords. */
export interface SharedStorage {
  readonly mongodbUrl: string
  readonly redisUrl: string
  /** The prefix of all keys in Redis. */
  readonly redisPrefix: string
}

export interface Config {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  readonly adminHost: string
  /** 0 selects a free port. */
  readonly adminPort: number
  /** If absent, all data lives in this process. */
  readonly distributed?: SharedStorage
  /** The first signs cursors, and all verify them. If absent, this process generates one, and its cursors become invalid when it exits. */
  readonly cursorSecrets?: readonly [string, ...string[]]
  /** Has no trailing slash. If absent, links are relative. */
  readonly publicUrl?: string
  readonly trustedProxyHops: number
  readonly expectedReplicas: number
  readonly plans: Plans
  /** Connections to the API port beyond this number are closed. */
  readonly maxConnections: number
  /** API requests in flight beyond this number get 503. */
  readonly maxInFlight: number
  readonly hasDocs: boolean
  readonly hasSampleData: boolean
  readonly idBlockSize: number
  readonly drainDelayMs: number
  readonly shutdownTimeoutMs: number
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

/** All errors in the settings, one line each. */
export class ConfigError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(`The settings are not valid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`)
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** Only `serve` requires `CURSOR_SECRET`, `TRUSTED_PROXY_HOPS`, two different ports and, in production, a choice of storage. */
export type Purpose = 'serve' | 'command'

/** The input of `RULES`. A setting with an invalid value is `undefined`. */
interface RuleInput {
  readonly values: Partial<SettingValues>
  readonly env: Environment
  readonly purpose: Purpose
  /** `undecided` if a URL is empty. The empty URL is reported as an error, and the rules about storage report nothing. */
  readonly storage: 'memory' | 'shared' | 'undecided'
}

/** Reads every setting. Throws `ConfigError` with all errors. */
export function readConfig(env: Environment, purpose: Purpose = 'serve'): Config {
  const problems: string[] = []
  const values = readValues(env, problems)
  const plans = readPlans(values.PLANS_FILE, problems)
  const storage = determineStorage(env)
  for (const findProblem of RULES) {
    const problem = findProblem({ values, env, purpose, storage })
    if (problem) problems.push(problem)
  }
  problems.push(...findMisspelledNames(env))
  if (problems.length > 0 || !plans) throw new ConfigError(problems)
  // If there are no problems, every setting with a default has a value.
  return deepFreeze(toConfig(values as SettingValues, plans))
}

/** Reads the settings of this process. No other function reads `process.env`. */
export function readProcessConfig(purpose: Purpose = 'serve'): Config {
  return readConfig(process.env, purpose)
}

/** Whether an OTLP endpoint is set and tracing is not disabled. OpenTelemetry itself reads these and all other variables that begin with `OTEL_`. */
export function isTracingConfigured(env: Environment = process.env): boolean {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none') return false
  return [env['OTEL_EXPORTER_OTLP_ENDPOINT'], env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']].some(Boolean)
}

function toConfig(values: SettingValues, plans: Plans): Config {
  const { MONGODB_URL: mongodbUrl, REDIS_URL: redisUrl, CURSOR_SECRET: cursorSecrets, PUBLIC_URL: publicUrl } = values
  return {
    host: values.HOST,
    port: values.PORT,
    adminHost: values.ADMIN_HOST,
    adminPort: values.ADMIN_PORT,
    ...(mongodbUrl && redisUrl ? { distributed: { mongodbUrl, redisUrl, redisPrefix: values.REDIS_PREFIX } } : {}),
    ...(cursorSecrets === undefined ? {} : { cursorSecrets }),
    ...(publicUrl === undefined ? {} : { publicUrl }),
    trustedProxyHops: values.TRUSTED_PROXY_HOPS,
    expectedReplicas: values.EXPECTED_REPLICAS,
    plans,
    maxConnections: values.MAX_CONNECTIONS,
    maxInFlight: values.MAX_IN_FLIGHT,
    hasDocs: values.DOCS,
    hasSampleData: values.SAMPLE_DATA ?? mongodbUrl === undefined,
    idBlockSize: values.ID_BLOCK_SIZE,
    drainDelayMs: values.DRAIN_DELAY_MS,
    shutdownTimeoutMs: values.SHUTDOWN_TIMEOUT_MS,
    logLevel: values.LOG_LEVEL,
  }
}

function determineStorage(env: Environment): RuleInput['storage'] {
  const urls = (['MONGODB_URL', 'REDIS_URL'] as const).flatMap((name) => [env[name], env[`${name}_FILE`]])
  if (urls.includes('')) return 'undecided'
  return urls.some((url) => url !== undefined) ? 'shared' : 'memory'
}

function isSet(env: Environment, name: SettingName): boolean {
  return env[name] !== undefined || (getSetting(name).isSecret === true && env[`${name}_FILE`] !== undefined)
}

function readValues(env: Environment, problems: string[]): Partial<SettingValues> {
  return Object.fromEntries(SETTING_NAMES.map((name) => [name, readValue(env, name, problems)]))
}

function readValue(env: Environment, name: SettingName, problems: string[]): unknown {
  const { parser, expected, isSecret, default: defaultText } = getSetting(name)
  const text = readText(env, name, problems) ?? defaultText
  if (text === undefined) return undefined
  const parsed = parser.safeParse(text)
  if (parsed.success) return parsed.data
  // Errors must not contain the value of a secret.
  const shown = !isSecret ? `, not ${JSON.stringify(text)}` : text === '' ? ', not empty' : ''
  problems.push(`${name} must be ${expected}${shown}`)
  return undefined
}

function readText(env: Environment, name: SettingName, problems: string[]): string | undefined {
  const file = `${name}_FILE`
  const path = env[file]
  if (path === undefined) return env[name]
  if (!getSetting(name).isSecret) problems.push(`${name} has no file variant: set ${name} instead of ${file}`)
  else if (env[name] !== undefined) problems.push(`${name} and ${file} are both set; set only one`)
  // The variable may contain the secret itself by mistake, so the error does not repeat its value.
  else return readFile(file, path, 'the file', problems)?.trim()
  return undefined
}

function readFile(setting: string, path: string, shownPath: string, problems: string[]): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    problems.push(`${setting}: cannot read ${shownPath} (${(error as NodeJS.ErrnoException).code})`)
    return undefined
  }
}

function readPlans(file: string | undefined, problems: string[]): Plans | undefined {
  const path = file ?? fileURLToPath(new URL('../../config/plans.json', import.meta.url))
  const text = readFile('PLANS_FILE', path, path, problems)
  if (text === undefined) return undefined
  const parsed = parsePlans(text)
  if ('plans' in parsed) return parsed
  problems.push(...parsed.problems.map((problem) => `PLANS_FILE ${path}: ${problem}`))
  return undefined
}

/** The rules that involve more than one setting. Each returns an error message, or false if the settings satisfy it. */
const RULES: readonly ((input: RuleInput) => string | false)[] = [
  requireBothUrls,
  requireCursorSecret,
  requireTrustedProxyHops,
  rejectMemoryWithUrls,
  requireStorageInProduction,
  rejectSampleDataWithUrls,
  requireDifferentPorts,
  requireShortDrainDelay,
]

function requireBothUrls({ env, storage }: RuleInput): string | false {
  const [missing, present] = isSet(env, 'MONGODB_URL') ? (['REDIS_URL', 'MONGODB_URL'] as const) : (['MONGODB_URL', 'REDIS_URL'] as const)
  return storage === 'shared' && !isSet(env, missing) && `${missing} must be set if ${present} is set: the service uses both or neither`
}

function requireCursorSecret({ env, storage, purpose }: RuleInput): string | false {
  const isMissing = storage === 'shared' && purpose === 'serve' && !isSet(env, 'CURSOR_SECRET')
  return isMissing && 'CURSOR_SECRET must be set if MONGODB_URL and REDIS_URL are set, to the same value for all replicas'
}

function requireTrustedProxyHops({ env, storage, purpose }: RuleInput): string | false {
  const isMissing = storage === 'shared' && purpose === 'serve' && !isSet(env, 'TRUSTED_PROXY_HOPS')
  return (
    isMissing &&
    'TRUSTED_PROXY_HOPS must be set if MONGODB_URL and REDIS_URL are set: to the number of proxies in front of the service that add to X-Forwarded-For, or to 0 if there are none'
  )
}

function rejectMemoryWithUrls({ values, storage }: RuleInput): string | false {
  const isContradiction = storage === 'shared' && values.STORAGE === 'memory'
  return isContradiction && 'STORAGE=memory contradicts MONGODB_URL and REDIS_URL; set either STORAGE or the URLs'
}

function requireStorageInProduction({ env, storage, purpose }: RuleInput): string | false {
  const isMissing = storage === 'memory' && !isSet(env, 'STORAGE') && env['NODE_ENV'] === 'production' && purpose === 'serve'
  return (
    isMissing &&
    'NODE_ENV=production requires a choice of storage: set MONGODB_URL and REDIS_URL, or set STORAGE=memory to keep all data in this process until it ends'
  )
}

function rejectSampleDataWithUrls({ values, storage }: RuleInput): string | false {
  return storage === 'shared' && values.SAMPLE_DATA === true && 'SAMPLE_DATA=on works only without MONGODB_URL; use petstore seed'
}

const WILDCARD_HOSTS: readonly (string | undefined)[] = ['0.0.0.0', '::']

function requireDifferentPorts({ values, purpose }: RuleInput): string | false {
  const { HOST, PORT, ADMIN_HOST, ADMIN_PORT } = values
  const sharesHost = HOST === ADMIN_HOST || WILDCARD_HOSTS.includes(HOST) || WILDCARD_HOSTS.includes(ADMIN_HOST)
  const isConflict = purpose === 'serve' && PORT !== undefined && PORT !== 0 && PORT === ADMIN_PORT && sharesHost
  return isConflict && `PORT and ADMIN_PORT are both ${PORT}; set them to different ports`
}

function requireShortDrainDelay({ values: { DRAIN_DELAY_MS, SHUTDOWN_TIMEOUT_MS } }: RuleInput): string | false {
  const isTooLong = DRAIN_DELAY_MS !== undefined && SHUTDOWN_TIMEOUT_MS !== undefined && DRAIN_DELAY_MS >= SHUTDOWN_TIMEOUT_MS
  return isTooLong && 'DRAIN_DELAY_MS must be less than SHUTDOWN_TIMEOUT_MS, which includes the drain delay'
}

/** Finds unknown variables that are probably misspelled settings. Ignores all others, because they belong to other programs. */
function findMisspelledNames(env: Environment): string[] {
  const known = SETTING_NAMES.flatMap((name) => [name, `${name}_FILE`])
  const documented = SETTING_NAMES.flatMap((name) => (getSetting(name).isSecret ? [name, `${name}_FILE`] : [name]))
  return Object.keys(env).flatMap((name) => {
    if (env[name] === undefined || known.includes(name)) return []
    const intended = documented.find((other) => isLikelyTypo(name, other))
    return intended === undefined ? [] : [`${name} is not a setting; did you mean ${intended}?`]
  })
}

function deepFreeze<Value extends object>(value: Value): Readonly<Value> {
  for (const part of Object.values(value) as unknown[]) if (typeof part === 'object' && part !== null) deepFreeze(part)
  return Object.freeze(value)
}
