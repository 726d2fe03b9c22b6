import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { Plans } from './core/plan.js'
import { isNearMiss } from './near-miss.js'
import { parsePlans } from './plans-file.js'

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** The storage that all replicas share. Both URLs may contain passwords. */
export interface SharedStorage {
  readonly mongodbUrl: string
  readonly redisUrl: string
}

export interface Config {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  readonly adminHost: string
  /** 0 picks a free port. */
  readonly adminPort: number
  /** Absent: all data lives in this process. */
  readonly distributed?: SharedStorage
  /** Absent: this process generates one, and its cursors are valid until it ends. */
  readonly cursorSecret?: string
  /** Without a trailing slash. Absent: links are relative. */
  readonly publicUrl?: string
  readonly trustedProxyHops: number
  readonly expectedReplicas: number
  readonly plans: Plans
  /** Connections to the API port beyond this number are closed. */
  readonly maxConnections: number
  /** API requests in flight beyond this number get 503. */
  readonly maxInFlight: number
  readonly docs: boolean
  readonly sampleData: boolean
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

/** Whole numbers in plain decimal notation only. */
const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,16}$/)
    .transform(Number)
    .refine((value) => value >= min && value <= max)
const port = { parser: wholeNumber(0, 65_535), expected: 'a whole number from 0 to 65535' }
const address = { parser: z.string().regex(/^[\w.:-]+$/), expected: 'a host name or an IP address' }
const onOff = { parser: z.enum(['on', 'off']).transform((value) => value === 'on'), expected: 'on or off' }
const count = (max: number, min = 1) => ({ parser: wholeNumber(min, max), expected: `a whole number from ${min} to ${max}` })
const logLevel = { parser: z.enum(LOG_LEVELS), expected: `one of ${LOG_LEVELS.join(', ')}` }
const cursorSecret = {
  parser: z.string().refine((secret) => Buffer.byteLength(secret) >= 32),
  expected: '32 bytes or more',
  isSecret: true,
} as const
const mongodbUrl = {
  parser: z.string().regex(/^mongodb(\+srv)?:\/\/\S+$/),
  expected: 'a URL that begins with mongodb:// or mongodb+srv://',
  isSecret: true,
} as const
const redisUrl = {
  parser: z.string().regex(/^rediss?(\+cluster|\+sentinel)?:\/\/\S+$/),
  expected: 'a URL that begins with redis://, redis+cluster:// or redis+sentinel:// (rediss for TLS)',
  isSecret: true,
} as const
const publicUrl = {
  parser: z
    .string()
    .regex(/^https?:\/\/[^\s\p{Cc}<>"\\?#]+$/u)
    .refine((url) => URL.canParse(url) && !new URL(url).username && !new URL(url).password)
    // Normalized for headers: ASCII only, without dot segments.
    .transform((url) => new URL(url).href.replace(/\/+$/, ''))
    .refine((url) => !url.endsWith('/v1')),
  expected: 'an http or https URL without /v1, user, query or fragment',
}

interface Setting {
  readonly parser: z.ZodType<unknown, string>
  readonly expected: string
  /** May contain a secret: no error contains its value, and `NAME_FILE` may name a file that contains it. */
  readonly isSecret?: true
}

const SETTINGS = {
  HOST: address,
  PORT: port,
  ADMIN_HOST: address,
  ADMIN_PORT: port,
  MONGODB_URL: mongodbUrl,
  REDIS_URL: redisUrl,
  STORAGE: { parser: z.literal('memory'), expected: 'memory' },
  CURSOR_SECRET: cursorSecret,
  PUBLIC_URL: publicUrl,
  TRUSTED_PROXY_HOPS: count(10, 0),
  EXPECTED_REPLICAS: count(10_000),
  PLANS_FILE: { parser: z.string(), expected: 'the path of a file' },
  MAX_CONNECTIONS: count(1_000_000),
  MAX_IN_FLIGHT: count(1_000_000),
  DOCS: onOff,
  SAMPLE_DATA: onOff,
  ID_BLOCK_SIZE: count(1_000_000),
  DRAIN_DELAY_MS: count(3_599_999, 0),
  SHUTDOWN_TIMEOUT_MS: count(3_600_000),
  LOG_LEVEL: logLevel,
} as const satisfies Record<string, Setting>

type SettingName = keyof typeof SETTINGS
type SettingValue<Name extends SettingName> = z.output<(typeof SETTINGS)[Name]['parser']>

/** The names of all environment variables that are settings. */
const NAMES: readonly string[] = Object.entries<Setting>(SETTINGS).flatMap(([name, { isSecret }]) =>
  isSecret ? [name, `${name}_FILE`] : [name],
)

/** Only `serve` requires `CURSOR_SECRET`, `TRUSTED_PROXY_HOPS` and, in production, a choice of storage. */
export type Purpose = 'serve' | 'command'

/** Reads every setting. Throws `ConfigError` with all errors. */
export function readConfig(env: Environment, purpose: Purpose = 'serve'): Config {
  const problems: string[] = []

  function setting<Name extends SettingName>(name: Name): SettingValue<Name> | undefined {
    const { parser, expected, isSecret }: Setting = SETTINGS[name]
    const text = isSecret ? secretText(name) : env[name]
    if (text === undefined) return undefined
    const parsed = parser.safeParse(text)
    if (parsed.success) return parsed.data as SettingValue<Name>
    problems.push(`${name} must be ${expected}${isSecret ? '' : `, not ${JSON.stringify(text)}`}`)
    return undefined
  }

  function secretText(name: string): string | undefined {
    const path = env[`${name}_FILE`]
    if (path === undefined) return env[name]
    if (env[name] !== undefined) {
      problems.push(`${name} and ${name}_FILE are both set; set one`)
      return undefined
    }
    // The value may be the secret itself instead of a path, so the error must not contain it.
    return readText(`${name}_FILE`, path, 'the file')?.trim()
  }

  function readText(name: string, path: string, shown = path): string | undefined {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      problems.push(`${name}: cannot read ${shown} (${(error as NodeJS.ErrnoException).code})`)
      return undefined
    }
  }

  function plans(): Plans | undefined {
    const path = setting('PLANS_FILE') ?? fileURLToPath(new URL('../../config/plans.json', import.meta.url))
    const text = readText('PLANS_FILE', path)
    if (text === undefined) return undefined
    const parsed = parsePlans(text)
    if ('plans' in parsed) return parsed
    problems.push(...parsed.problems.map((problem) => `PLANS_FILE ${path}: ${problem}`))
    return undefined
  }

  const isSet = (name: string) => env[name] !== undefined || env[`${name}_FILE`] !== undefined
  const distributed = isSet('MONGODB_URL') || isSet('REDIS_URL')
  if (isSet('MONGODB_URL') !== isSet('REDIS_URL')) {
    const [present, missing] = isSet('MONGODB_URL') ? ['MONGODB_URL', 'REDIS_URL'] : ['REDIS_URL', 'MONGODB_URL']
    problems.push(`${missing} must be set with ${present}: replicas share both or neither`)
  }
  if (distributed && purpose === 'serve') {
    if (!isSet('CURSOR_SECRET'))
      problems.push('CURSOR_SECRET must be set with MONGODB_URL and REDIS_URL, to the same value for all replicas')
    if (env['TRUSTED_PROXY_HOPS'] === undefined) {
      problems.push(
        'TRUSTED_PROXY_HOPS must be set with MONGODB_URL and REDIS_URL: to the number of proxies in front of the service that add to X-Forwarded-For, or to 0 if there are none',
      )
    }
  }
  const storage = setting('STORAGE')
  if (distributed && storage) problems.push('STORAGE=memory contradicts MONGODB_URL and REDIS_URL; set either STORAGE or the URLs')
  if (env['NODE_ENV'] === 'production' && purpose === 'serve' && !distributed && env['STORAGE'] === undefined) {
    problems.push(
      'NODE_ENV=production requires a choice of storage: set MONGODB_URL and REDIS_URL, or set STORAGE=memory to keep all data in this process until it ends',
    )
  }
  if (distributed && env['SAMPLE_DATA'] === 'on') problems.push('SAMPLE_DATA=on works only without MONGODB_URL; use petstore seed')
  const mongodb = setting('MONGODB_URL')
  const redis = setting('REDIS_URL')
  const config = {
    host: setting('HOST') ?? '127.0.0.1',
    port: setting('PORT') ?? 8080,
    adminHost: setting('ADMIN_HOST') ?? '127.0.0.1',
    adminPort: setting('ADMIN_PORT') ?? 9090,
    ...(mongodb && redis ? { distributed: { mongodbUrl: mongodb, redisUrl: redis } } : {}),
    ...optional('cursorSecret', setting('CURSOR_SECRET')),
    ...optional('publicUrl', setting('PUBLIC_URL')),
    trustedProxyHops: setting('TRUSTED_PROXY_HOPS') ?? 0,
    expectedReplicas: setting('EXPECTED_REPLICAS') ?? 1,
    plans: plans(),
    maxConnections: setting('MAX_CONNECTIONS') ?? 10_000,
    maxInFlight: setting('MAX_IN_FLIGHT') ?? 1_000,
    docs: setting('DOCS') ?? true,
    sampleData: setting('SAMPLE_DATA') ?? !distributed,
    idBlockSize: setting('ID_BLOCK_SIZE') ?? 64,
    drainDelayMs: setting('DRAIN_DELAY_MS') ?? 0,
    shutdownTimeoutMs: setting('SHUTDOWN_TIMEOUT_MS') ?? 25_000,
    logLevel: setting('LOG_LEVEL') ?? 'info',
  }
  if (problems.length === 0 && config.drainDelayMs >= config.shutdownTimeoutMs) {
    problems.push('DRAIN_DELAY_MS must be below SHUTDOWN_TIMEOUT_MS, which includes it')
  }
  problems.push(...findMisspelledNames(env))

  if (problems.length > 0 || !config.plans) throw new ConfigError(problems)
  return deepFreeze({ ...config, plans: config.plans })
}

/** The settings of this process. The only reader of `process.env`. */
export function readProcessConfig(purpose: Purpose = 'serve'): Config {
  return readConfig(process.env, purpose)
}

function findMisspelledNames(env: Environment): string[] {
  return Object.keys(env).flatMap((name) => {
    const intended = env[name] === undefined || NAMES.includes(name) ? undefined : NAMES.find((known) => isNearMiss(name, known))
    return intended === undefined ? [] : [`${name} is not a setting; did you mean ${intended}?`]
  })
}

function optional<Name extends string, Value>(name: Name, value: Value | undefined): Partial<Record<Name, Value>> {
  return (value === undefined ? {} : { [name]: value }) as Partial<Record<Name, Value>>
}

function deepFreeze<Value extends object>(value: Value): Readonly<Value> {
  for (const part of Object.values(value) as unknown[]) if (typeof part === 'object' && part !== null) deepFreeze(part)
  return Object.freeze(value)
}
