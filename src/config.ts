import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { Plans } from './core/plan.js'
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
  readonly maxConnections: number
  readonly maxInFlight: number
  readonly plans: Plans
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

/** Settings that may hold a secret, and so may also be given as the path of a file that holds it: `NAME_FILE`. */
const SECRET_SETTINGS = ['MONGODB_URL', 'REDIS_URL', 'CURSOR_SECRET']

const SETTINGS = [
  'HOST',
  'PORT',
  'ADMIN_HOST',
  'ADMIN_PORT',
  'PUBLIC_URL',
  'TRUSTED_PROXY_HOPS',
  'EXPECTED_REPLICAS',
  'MAX_CONNECTIONS',
  'MAX_IN_FLIGHT',
  'PLANS_FILE',
  'DOCS',
  'SAMPLE_DATA',
  'ID_BLOCK_SIZE',
  'DRAIN_DELAY_MS',
  'SHUTDOWN_TIMEOUT_MS',
  'LOG_LEVEL',
  ...SECRET_SETTINGS,
  ...SECRET_SETTINGS.map((name) => `${name}_FILE`),
]

/** The first words of settings of several words: what begins so and is no setting is most likely one misspelt. */
const STEMS = new Set(['DOCS_', ...SETTINGS.filter((name) => name.includes('_')).map((name) => `${name.split('_', 1)[0]}_`)])

/** Set for the test run, which starts engines of its own. */
const IMAGE_NAMES = ['REDIS_IMAGE', 'MONGODB_IMAGE']

/** What Kubernetes tells every process of each service of its namespace, whatever that is called. */
const SERVICE_LINK = /^(.+?)_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)$/

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
const cursorSecret = { parser: z.string().refine((secret) => Buffer.byteLength(secret) >= 32), wants: '32 bytes or more' }
const mongodbUrl = { parser: z.string().regex(/^mongodb(\+srv)?:\/\/\S+$/), wants: 'a URL that begins with mongodb:// or mongodb+srv://' }
const redisUrl = {
  parser: z.string().regex(/^rediss?(\+cluster|\+sentinel)?:\/\/\S+$/),
  wants: 'a URL that begins with redis://, redis+cluster:// or redis+sentinel:// (rediss for TLS)',
}
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

/** What the settings are read for: commands that serve nothing need no secret of cursors. */
export type Purpose = 'serve' | 'command'

/** Reads every setting. Throws `ConfigError` with all faults together. */
export function readConfig(env: Environment, purpose: Purpose = 'serve'): Config {
  const faults: string[] = []

  function setting<Value>(name: string, { parser, wants }: { parser: z.ZodType<Value, string>; wants: string }): Value | undefined {
    const text = SECRET_SETTINGS.includes(name) ? secretText(name) : env[name]
    if (text === undefined) return undefined
    const parsed = parser.safeParse(text)
    if (parsed.success) return parsed.data
    const shown = SECRET_SETTINGS.includes(name) ? '' : `, not ${JSON.stringify(text)}`
    faults.push(`${name} must be ${wants}${shown}`)
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
    const path = env['PLANS_FILE'] ?? fileURLToPath(new URL('../../config/plans.json', import.meta.url))
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
  if (distributed && purpose === 'serve' && !isSet('CURSOR_SECRET')) {
    faults.push('CURSOR_SECRET must be set with MONGODB_URL and REDIS_URL, to the same value for all replicas')
  }
  if (distributed && env['SAMPLE_DATA'] === 'on') faults.push('SAMPLE_DATA is for a process without MONGODB_URL; use petstore seed')
  const mongodb = setting('MONGODB_URL', mongodbUrl)
  const redis = setting('REDIS_URL', redisUrl)
  const config = {
    host: setting('HOST', address) ?? '127.0.0.1',
    port: setting('PORT', port) ?? 8080,
    adminHost: setting('ADMIN_HOST', address) ?? '127.0.0.1',
    adminPort: setting('ADMIN_PORT', port) ?? 9090,
    ...(mongodb && redis ? { distributed: { mongodbUrl: mongodb, redisUrl: redis } } : {}),
    ...optional('cursorSecret', setting('CURSOR_SECRET', cursorSecret)),
    ...optional('publicUrl', setting('PUBLIC_URL', publicUrl)),
    trustedProxyHops: setting('TRUSTED_PROXY_HOPS', count(10, 0)) ?? 0,
    expectedReplicas: setting('EXPECTED_REPLICAS', count(10_000)) ?? 1,
    maxConnections: setting('MAX_CONNECTIONS', count(1_000_000)) ?? 10_000,
    maxInFlight: setting('MAX_IN_FLIGHT', count(1_000_000)) ?? 1_000,
    plans: plans(),
    docs: setting('DOCS', onOff) ?? true,
    sampleData: setting('SAMPLE_DATA', onOff) ?? !distributed,
    idBlockSize: setting('ID_BLOCK_SIZE', count(1_000_000)) ?? 64,
    drainDelayMs: setting('DRAIN_DELAY_MS', count(3_599_999, 0)) ?? 0,
    shutdownTimeoutMs: setting('SHUTDOWN_TIMEOUT_MS', count(3_600_000)) ?? 25_000,
    logLevel: setting('LOG_LEVEL', logLevel) ?? 'info',
  }
  if (faults.length === 0 && config.drainDelayMs >= config.shutdownTimeoutMs) {
    faults.push('DRAIN_DELAY_MS must be below SHUTDOWN_TIMEOUT_MS, for the stop includes it')
  }
  faults.push(...unknownSettings(env))

  if (faults.length > 0 || !config.plans) throw new ConfigError(faults)
  return deepFreeze({ ...config, plans: config.plans })
}

/** The settings of this process. The only reader of `process.env`. */
export function readProcessConfig(purpose: Purpose = 'serve'): Config {
  return readConfig(process.env, purpose)
}

function unknownSettings(env: Environment): string[] {
  const unknown = Object.keys(env).filter(
    (name) =>
      [...STEMS].some((stem) => name.startsWith(stem)) &&
      !SETTINGS.includes(name) &&
      !IMAGE_NAMES.includes(name) &&
      !isServiceLink(name, env),
  )
  return unknown.map((name) => {
    const stem = `${name.split('_', 1)[0]}_`
    return `${name} is no setting; those that begin like it are ${SETTINGS.filter((known) => `${known}_`.startsWith(stem)).join(', ')}`
  })
}

function isServiceLink(name: string, env: Environment): boolean {
  const [, service] = SERVICE_LINK.exec(name) ?? []
  return env[`${service}_SERVICE_HOST`] !== undefined && env[`${service}_SERVICE_PORT`] !== undefined
}

function optional<Name extends string, Value>(name: Name, value: Value | undefined): Partial<Record<Name, Value>> {
  return (value === undefined ? {} : { [name]: value }) as Partial<Record<Name, Value>>
}

function deepFreeze<Value extends object>(value: Value): Readonly<Value> {
  for (const part of Object.values(value) as unknown[]) if (typeof part === 'object' && part !== null) deepFreeze(part)
  return Object.freeze(value)
}
