import { z } from 'zod'

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

interface Setting {
  readonly parser: z.ZodType<unknown, string>
  /** Completes "must be …" in the error for a value that the parser rejects. */
  readonly expected: string
  /** The text that is parsed if the environment variable is unset. */
  readonly default?: string
  /** Documents what happens without a `default`. */
  readonly whenUnset?: string
  /** One line of Markdown. */
  readonly meaning: string
  /** May contain a secret: errors never contain its value, and `NAME_FILE` may name a file that contains it. */
  readonly isSecret?: true
}

/** Accepts plain decimal notation only. */
const wholeNumber = (min: number, max: number) => ({
  parser: z
    .string()
    .regex(/^\d{1,16}$/)
    .transform(Number)
    .refine((value) => value >= min && value <= max),
  expected: `a whole number from ${min} to ${max}`,
})
const port = wholeNumber(0, 65_535)
const host = { parser: z.string().regex(/^[\w.:-]+$/), expected: 'a host name or an IP address' }
const onOff = { parser: z.enum(['on', 'off']).transform((value) => value === 'on'), expected: 'on or off' }
/** Checks the scheme, optional credentials and the first character of the host. The adapters check the rest. */
const url = (schemes: string) => z.string().regex(new RegExp(String.raw`^(${schemes})://([^\s/?#]*@)?(?![^/?#]*@)[^\s/?#@:,]\S*$`))
const publicUrl = z
  .string()
  .regex(/^https?:\/\/[^\s\p{Cc}<>"\\?#]+$/u)
  .refine((text) => URL.canParse(text) && !new URL(text).username && !new URL(text).password)
  // Normalizes the URL for headers: ASCII only, without dot segments.
  .transform((text) => new URL(text).href.replace(/\/+$/, ''))
  .refine((text) => !text.endsWith('/v1'))

/**
 * Declares every setting once. Parsing, defaults, errors, the detection of misspelled names and the documentation are derived from this
 * table.
 */
export const SETTINGS = {
  HOST: { ...host, default: '127.0.0.1', meaning: 'The host name or IP address that the API listens on.' },
  PORT: { ...port, default: '8080', meaning: 'The port of the API. `0` selects a free port, which the service prints.' },
  ADMIN_HOST: { ...host, default: '127.0.0.1', meaning: 'The host name or IP address that the admin server listens on.' },
  ADMIN_PORT: {
    ...port,
    default: '9090',
    meaning:
      'The port of the admin server, which serves `/metrics` (Prometheus) and `/health`. `0` selects a free port, which the service prints.',
  },
  MONGODB_URL: {
    parser: url(String.raw`mongodb(?:\+srv)?`),
    expected: 'a URL that begins with mongodb:// or mongodb+srv:// and names a host',
    isSecret: true,
    meaning:
      'The URL of the MongoDB server that stores pets, orders and API keys: `mongodb://…` or `mongodb+srv://…`, with the database in its path (default: `petstore`) and TLS options. Set it together with `REDIS_URL`.',
  },
  REDIS_URL: {
    parser: url(String.raw`rediss?(?:\+cluster|\+sentinel)?`),
    expected: 'a URL that begins with redis://, redis+cluster:// or redis+sentinel:// (rediss for TLS) and names a host',
    isSecret: true,
    meaning:
      'The URL of the Redis server that stores quotas: `redis://host` (one server), `redis+cluster://host,host` or `redis+sentinel://host,host/<name>`; `rediss` for TLS, with TLS options. Set it together with `MONGODB_URL`.',
  },
  REDIS_PREFIX: {
    parser: z.string().regex(/^[^\s{}]{1,100}$/),
    expected: '1 to 100 characters without white space and braces',
    default: 'petstore:',
    meaning: 'The prefix of all keys in Redis. Deployments that share a Redis server need different prefixes.',
  },
  STORAGE: {
    parser: z.literal('memory'),
    expected: 'memory',
    meaning:
      '`memory` confirms that all data lives in this process. Required with `NODE_ENV=production` unless `MONGODB_URL` and `REDIS_URL` are set.',
  },
  CURSOR_SECRET: {
    parser: z
      .string()
      .transform((text) => text.split(',') as [string, ...string[]])
      .refine((secrets) => secrets.every((secret) => Buffer.byteLength(secret) >= 32)),
    expected: 'a secret of 32 bytes or more, or several of them separated by commas',
    isSecret: true,
    whenUnset: 'random at each start',
    meaning:
      'The secret that signs pagination cursors; 32 bytes or more. To [change it](runbook.md#change-cursor_secret), set several secrets, separated by commas: the first signs, and all verify. Without it, cursors become invalid when the process ends. Required with `MONGODB_URL` and `REDIS_URL`, with the same value for all replicas.',
  },
  PUBLIC_URL: {
    parser: publicUrl,
    expected: 'an http or https URL without /v1, credentials, query or fragment',
    meaning:
      'The base URL of the API as clients see it, without `/v1`. Makes `Link` and `Location` absolute and is the server URL of the OpenAPI document (if unset: the IP address and port that the client connected to). With `https`, responses carry `Strict-Transport-Security`.',
  },
  TRUSTED_PROXY_HOPS: {
    ...wholeNumber(0, 10),
    default: '0',
    meaning:
      'The number of proxies to trust in `X-Forwarded-For`, counted from the right. Required with `MONGODB_URL` and `REDIS_URL`, because all clients behind an untrusted load balancer share one failure limit.',
  },
  EXPECTED_REPLICAS: {
    ...wholeNumber(1, 10_000),
    default: '10',
    meaning:
      'The number of replicas, used only by a replica that has never reached Redis. While Redis is unavailable, the remaining quotas are divided by the number of replicas.',
  },
  PLANS_FILE: {
    parser: z.string(),
    expected: 'the path of a file',
    whenUnset: '`config/plans.json`',
    meaning: 'The file with the limits and the mode (`enforce` or `shadow`) of each plan, the ban rules and the failure limit.',
  },
  MAX_CONNECTIONS: {
    ...wholeNumber(1, 1_000_000),
    default: '10000',
    meaning: 'The maximum number of connections to the API. Further connections are closed.',
  },
  MAX_IN_FLIGHT: {
    ...wholeNumber(1, 1_000_000),
    default: '1000',
    meaning: 'The maximum number of requests in flight under `/v1`. Further requests get 503.',
  },
  DOCS: { ...onOff, default: 'on', meaning: '`on` or `off`: whether to serve `/docs` and the OpenAPI document.' },
  SAMPLE_DATA: {
    ...onOff,
    whenUnset: '`on`, or `off` with `MONGODB_URL`',
    meaning: '`on` or `off`: whether to start with ten pets and five orders. With `MONGODB_URL`, use `petstore seed` instead.',
  },
  ID_BLOCK_SIZE: {
    ...wholeNumber(1, 1_000_000),
    default: '64',
    meaning: 'The number of pet IDs that a replica reserves in MongoDB at a time.',
  },
  DRAIN_DELAY_MS: {
    ...wholeNumber(0, 3_599_999),
    default: '0',
    meaning: 'How long to keep serving requests after SIGTERM while `/readyz` returns 503, in milliseconds.',
  },
  SHUTDOWN_TIMEOUT_MS: {
    ...wholeNumber(1, 3_600_000),
    default: '25000',
    meaning: 'The maximum duration of a shutdown, in milliseconds. Includes `DRAIN_DELAY_MS`.',
  },
  LOG_LEVEL: {
    parser: z.enum(LOG_LEVELS),
    expected: `one of ${LOG_LEVELS.join(', ')}`,
    default: 'info',
    meaning: `The minimum level of log messages: ${LOG_LEVELS.map((level) => `\`${level}\``).join(', ')}.`,
  },
} as const satisfies Record<string, Setting>

export type SettingName = keyof typeof SETTINGS
export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[]

type Parsed<Name extends SettingName> = z.output<(typeof SETTINGS)[Name]['parser']>
/** The parsed settings. A setting without a default may be unset. */
export type SettingValues = {
  readonly [Name in SettingName]: (typeof SETTINGS)[Name] extends { default: string } ? Parsed<Name> : Parsed<Name> | undefined
}

export function getSetting(name: SettingName): Setting {
  return SETTINGS[name]
}

/** Returns the documented table of settings, in Markdown. */
export function formatSettingsTable(): string {
  const rows = SETTING_NAMES.map((name) => {
    const { default: text, whenUnset, meaning, isSecret } = getSetting(name)
    const names = isSecret ? `\`${name}\`, \`${name}_FILE\`` : `\`${name}\``
    return `| ${names} | ${text === undefined ? (whenUnset ?? 'unset') : `\`${text}\``} | ${meaning} |`
  })
  return ['| setting | default | meaning |', '|---|---|---|', ...rows].join('\n')
}
