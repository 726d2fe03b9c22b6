import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { Plans } from './core/plan.js'
import { isNearMiss } from './near-miss.js'
import { parsePlans } from './plans-file.js'

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** What all replicas share. Both hold secrets. */
export interface SharedStorage {
  readonly mongodbUrl: string
  readonly redisUrl: string
}

export interface Config {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly adminHost: string
  /** 0 takes a free one. */
  readonly adminPort: number
  /** Absent: everything is kept in this process. */
  readonly distributed?: SharedStorage
  /** Absent: this process makes its own, and its cursors end with it. */
  readonly cursorSecret?: string
  /** Without a slash at its end; absent where links are relative. */
  readonly publicUrl?: string
  readonly trustedProxyHops: number
  readonly expectedReplicas: number
  readonly plans: Plans
  /** Connections to the API port beyond these are closed. */
  readonly maxConnections: number
  /** Requests in flight beyond these get 503. */
  readonly maxInFlight: number
  readonly docs: boolean
  readonly sampleData: boolean
  readonly idBlockSize: number
  readonly drainDelayMs: number
  readonly shutdownTimeoutMs: number
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

/** All that is wrong with the settings, one line each. */
export class ConfigError extends Error {
  constructor(readonly faults: readonly string[]) {
    super(`The settings are not usable:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** Whole numbers only, in plain decimal. */
const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,16}$/)
    .transform(Number)
    .refine((value) => value >= min && value <= max)
const port = { parser: wholeNumber(0, 65_535), wants: 'a whole number from 0 to 65535' }
const address = { parser: z.string().regex(/^[\w.:-]+$/), wants: 'a host name or an IP address' }
const onOff = { parser: z.enum(['on', 'off']).transform((value) => value === 'on'), wants: 'on or off' }
const count = (max: number, min = 1) => ({ parser: wholeNumber(min, max), wants: `a whole number from ${min} to ${max}` })
const logLevel = { parser: z.enum(LOG_LEVELS), wants: `one of ${LOG_LEVELS.join(', ')}` }
const cursorSecret = {
  parser: z.string().refine((secret) => Buffer.byteLength(secret) >= 32),
  wants: '32 bytes or more',
  isSecret: true,
} as const
const mongodbUrl = {
  parser: z.string().regex(/^mongodb(\+srv)?:\/\/\S+$/),
  wants: 'a URL that begins with mongodb:// or mongodb+srv://',
  isSecret: true,
} as const
const redisUrl = {
  parser: z.string().regex(/^rediss?(\+cluster|\+sentinel)?:\/\/\S+$/),
  wants: 'a URL that begins with redis://, redis+cluster:// or redis+sentinel:// (rediss for TLS)',
  isSecret: true,
} as const
const publicUrl = {
  parser: z
    .string()
    .regex(/^https?:\/\/[^\s\p{Cc}<>"\\?#]+$/u)
    .refine((url) => URL.canParse(url) && !new URL(url).username && !new URL(url).password)
    // In the spelling that URLs have in headers: no character beyond ASCII, no step up.
    .transform((url) => new URL(url).href.replace(/\/+$/, ''))
    .refine((url) => !url.endsWith('/v1')),
  wants: 'an http or https URL without /v1, user, query or fragment',
}

interface Setting {
  readonly parser: z.ZodType<unknown, string>
  readonly wants: string
  /** It may hold a secret: no error repeats its value, and `NAME_FILE` may name a file that holds it. */
  readonly isSecret?: true
}

const SETTINGS = {
  HOST: address,
  PORT: port,
  ADMIN_HOST: address,
  ADMIN_PORT: port,
  MONGODB_URL: mongodbUrl,
  REDIS_URL: redisUrl,
  STORAGE: { parser: z.literal('memory'), wants: 'memory' },
  CURSOR_SECRET: cursorSecret,
  PUBLIC_URL: publicUrl,
  TRUSTED_PROXY_HOPS: count(10, 0),
  EXPECTED_REPLICAS: count(10_000),
  PLANS_FILE: { parser: z.string(), wants: 'the path of a file' },
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

/** Every name that is read. */
const NAMES: readonly string[] = Object.entries<Setting>(SETTINGS).flatMap(([name, { isSecret }]) =>
  isSecret ? [name, `${name}_FILE`] : [name],
)

/** What the settings are read for. Commands other than `serve` need no `CURSOR_SECRET`, no `TRUSTED_PROXY_HOPS` and no `STORAGE`. */
export type Purpose = 'serve' | 'command'

/** Reads every setting. Throws `ConfigError` with all faults together. */
export function readConfig(env: Environment, purpose: Purpose = 'serve'): Config {
  const faults: string[] = []

  function setting<Name extends SettingName>(name: Name): SettingValue<Name> | undefined {
    const { parser, wants, isSecret }: Setting = SETTINGS[name]
    const text = isSecret ? secretText(name) : env[name]
    if (text === undefined) return undefined
    const parsed = parser.safeParse(text)
    if (parsed.success) return parsed.data as SettingValue<Name>
    faults.push(`${name} must be ${wants}${isSecret ? '' : `, not ${JSON.stringify(text)}`}`)
    return undefined
  }

  function secretText(name: string): string | undefined {
    const path = env[`${name}_FILE`]
    if (path === undefined) return env[name]
    if (env[name] !== undefined) {
      faults.push(`${name} and ${name}_FILE are both set; set one`)
      return undefined
    }
    // Who puts the secret itself there instead of a path does not want to read it in the fault.
    return readText(`${name}_FILE`, path, 'the file that it names')?.trim()
  }

  function readText(name: string, path: string, shown = path): string | undefined {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      faults.push(`${name}: cannot read ${shown} (${(error as NodeJS.ErrnoException).code})`)
      return undefined
    }
  }

  function plans(): Plans | undefined {
    const path = setting('PLANS_FILE') ?? fileURLToPath(new URL('../../config/plans.json', import.meta.url))
    const text = readText('PLANS_FILE', path)
    if (text === undefined) return undefined
    const parsed = parsePlans(text)
    if ('plans' in parsed) return parsed
    faults.push(...parsed.faults.map((fault) => `PLANS_FILE ${path}: ${fault}`))
    return undefined
  }

  const isSet = (name: string) => env[name] !== undefined || env[`${name}_FILE`] !== undefined
  const distributed = isSet('MONGODB_URL') || isSet('REDIS_URL')
  if (isSet('MONGODB_URL') !== isSet('REDIS_URL')) {
    const [there, missing] = isSet('MONGODB_URL') ? ['MONGODB_URL', 'REDIS_URL'] : ['REDIS_URL', 'MONGODB_URL']
    faults.push(`${missing} must be set with ${there}: replicas share both or neither`)
  }
  if (distributed && purpose === 'serve') {
    if (!isSet('CURSOR_SECRET')) faults.push('CURSOR_SECRET must be set with MONGODB_URL and REDIS_URL, to the same value for all replicas')
    if (env['TRUSTED_PROXY_HOPS'] === undefined) {
      faults.push(
        'TRUSTED_PROXY_HOPS must be set with MONGODB_URL and REDIS_URL: to the number of proxies in front of the service that add to X-Forwarded-For, or to 0 if there are none',
      )
    }
  }
  const storage = setting('STORAGE')
  if (distributed && storage) faults.push('STORAGE=memory contradicts MONGODB_URL and REDIS_URL; set either STORAGE or the URLs')
  if (env['NODE_ENV'] === 'production' && purpose === 'serve' && !distributed && env['STORAGE'] === undefined) {
    faults.push(
      'NODE_ENV=production needs a choice of storage: set MONGODB_URL and REDIS_URL, or set STORAGE=memory to keep all data in this process, which loses it when it ends',
    )
  }
  if (distributed && env['SAMPLE_DATA'] === 'on') faults.push('SAMPLE_DATA is for a process without MONGODB_URL; use petstore seed')
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
  if (faults.length === 0 && config.drainDelayMs >= config.shutdownTimeoutMs) {
    faults.push('DRAIN_DELAY_MS must be below SHUTDOWN_TIMEOUT_MS, for the stop includes it')
  }
  faults.push(...misspeltNames(env))

  if (faults.length > 0 || !config.plans) throw new ConfigError(faults)
  return deepFreeze({ ...config, plans: config.plans })
}

/** The settings of this process. The only reader of `process.env`. */
export function readProcessConfig(purpose: Purpose = 'serve'): Config {
  return readConfig(process.env, purpose)
}

function misspeltNames(env: Environment): string[] {
  return Object.keys(env).flatMap((name) => {
    const meant = env[name] === undefined || NAMES.includes(name) ? undefined : NAMES.find((known) => isNearMiss(name, known))
    return meant === undefined ? [] : [`${name} is not a setting; did you mean ${meant}?`]
  })
}

function optional<Name extends string, Value>(name: Name, value: Value | undefined): Partial<Record<Name, Value>> {
  return (value === undefined ? {} : { [name]: value }) as Partial<Record<Name, Value>>
}

function deepFreeze<Value extends object>(value: Value): Readonly<Value> {
  for (const part of Object.values(value) as unknown[]) if (typeof part === 'object' && part !== null) deepFreeze(part)
  return Object.freeze(value)
}
