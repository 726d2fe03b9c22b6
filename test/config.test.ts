import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Config, Purpose } from '../src/config.js'
import { ConfigError, readConfig, readProcessConfig } from '../src/config.js'
import { LOG_LEVELS, SETTING_NAMES, formatSettingsTable } from '../src/settings.js'

type Environment = Record<string, string | undefined>

/** 32 bytes. */
const SECRET = 'correct horse battery staple 32!'

const MONGODB_URL = 'mongodb://petstore:hunter2@one,two:27018/pets?replicaSet=rs&tls=true'
const REDIS_URL = 'redis://petstore:hunter2@cache:6380/3'
const URLS = { MONGODB_URL, REDIS_URL }
const REQUIRED = { CURSOR_SECRET: SECRET, TRUSTED_PROXY_HOPS: '0' }
const SHARED = { ...URLS, ...REQUIRED }

/** Variables of real environments that are not settings. */
const FOREIGN_NAMES = `
  PATH HOME USER LOGNAME SHELL TERM PWD OLDPWD LANG LC_ALL TZ EDITOR PAGER HOSTNAME MAIL SHLVL DISPLAY TMPDIR XDG_RUNTIME_DIR SSH_AUTH_SOCK
  SUDO_USER HOSTTYPE NODE_ENV NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_VERSION YARN_VERSION npm_config_cache npm_lifecycle_event
  npm_package_version DEBUG FORCE_COLOR NO_COLOR CI GITHUB_ACTIONS GITHUB_TOKEN GITHUB_REF RUNNER_OS GITLAB_CI CI_COMMIT_SHA JENKINS_URL
  BUILD_NUMBER TRAVIS CIRCLECI DRONE STAGE DOCKER_HOST DOCKER_TLS_VERIFY COMPOSE_PROJECT_NAME CONTAINER_ID KUBERNETES_SERVICE_HOST
  KUBERNETES_PORT KUBERNETES_PORT_443_TCP POD_NAME POD_IP NODE_NAME NAMESPACE AWS_REGION AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
  ECS_CONTAINER_METADATA_URI GOOGLE_CLOUD_PROJECT GOOGLE_APPLICATION_CREDENTIALS K_SERVICE K_REVISION WEBSITE_HOSTNAME AZURE_CLIENT_ID DYNO
  DATABASE_URL REDIS_TLS_URL FLY_APP_NAME RENDER_EXTERNAL_URL RAILWAY_STATIC_URL VERCEL_URL CF_INSTANCE_ADDR VCAP_SERVICES HTTP_PROXY
  HTTPS_PROXY NO_PROXY http_proxy no_proxy ALL_PROXY SSL_CERT_FILE SSL_CERT_DIR OTEL_EXPORTER_OTLP_ENDPOINT OTEL_SERVICE_NAME DD_AGENT_HOST
  SENTRY_DSN NEW_RELIC_LICENSE_KEY LOG_FORMAT LOG_FILE LOG_PATH LOG_DIR SAMPLE_RATE RUST_LOG REDIS_HOST REDIS_PORT REDIS_DB REDIS_PASSWORD
  REDIS_USERNAME REDIS_TTL REDIS_SSL REDIS_TLS REDIS_IMAGE REDIS_VERSION REDIS_PREFIX MONGODB_HOST MONGODB_PORT MONGODB_DATABASE
  MONGODB_USERNAME MONGODB_PASSWORD MONGODB_IMAGE MONGO_INITDB_ROOT_USERNAME MONGO_INITDB_DATABASE POSTGRES_HOST POSTGRES_PORT DB_HOST DB_PORT
  DB_URL MYSQL_HOST MYSQL_PORT PGHOST PGPORT DB_MAX_CONNECTIONS MIN_CONNECTIONS BLOCK_SIZE SMTP_HOST SMTP_PORT PUBLIC_KEY PUBLIC_DIR
  PUBLIC_PATH PUBLIC_IP BASE_URL ADMIN_USER ADMIN_PASSWORD ADMIN_EMAIL ADMIN_TOKEN ADMIN_CERT METRICS_PORT APP_PORT APP_HOST HTTP_PORT
  GRPC_PORT STORAGE_DRIVER STORAGE_ACCOUNT STORAGE_BUCKET STORAGE_CLASS STORE SECRET SESSION_SECRET JWT_SECRET SHUTDOWN_GRACE DRAIN PORTAL
  PORTS POST POSTS HOSTS DOC DOCK DOCSIS SORT PORT_RANGE REDISTRIBUTE redis_url port host log_level PETSTORE_SERVICE_HOST PETSTORE_PORT
  DOCS_PORT DOCS_PORT_80_TCP DOCS_SERVICE_PORT DOCS_ENABLED DOCS_URL
  REDIS_SERVICE_HOST REDIS_SERVICE_PORT REDIS_SERVICE_PORT_TCP_REDIS REDIS_PORT_6379_TCP REDIS_PORT_6379_TCP_PROTO REDIS_PORT_6379_TCP_ADDR
  MONGODB_SERVICE_HOST MONGODB_SERVICE_PORT MONGODB_PORT_6379_TCP REDIS_SENTINEL_0_PORT MONGODB_HEADLESS_PORT LOG_COLLECTOR_SERVICE_HOST
  LOG_COLLECTOR_PORT ADMIN_UI_SERVICE_HOST ADMIN_UI_SERVICE_PORT ADMIN_UI_PORT REDIS_MASTER_PORT DOCS_SERVICE_HOST DOCS_PORT_6379_TCP_PORT
`
  .trim()
  .split(/\s+/)

describe('the settings', () => {
  let directory: string

  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'petstore-config-'))
  })

  after(() => rmSync(directory, { recursive: true }))

  /** Returns the path of a new file with this content. */
  function aFile(content: string, name = 'file'): string {
    const path = join(directory, name)
    writeFileSync(path, content)
    return path
  }

  it('have the documented defaults', () => {
    expect(readConfig({})).to.deep.equal({
      host: '127.0.0.1',
      port: 8080,
      adminHost: '127.0.0.1',
      adminPort: 9090,
      trustedProxyHops: 0,
      expectedReplicas: 10,
      plans: JSON.parse(readFileSync('config/plans.json', 'utf8')),
      maxConnections: 10_000,
      maxInFlight: 1_000,
      hasDocs: true,
      hasSampleData: true,
      idBlockSize: 64,
      drainDelayMs: 0,
      shutdownTimeoutMs: 25_000,
      logLevel: 'info',
    } satisfies Config)
  })

  it('each set one field of the configuration', () => {
    const plans = { ...readConfig({}).plans, failedAuthenticationsPerMinute: 24 }
    const config = readConfig({
      HOST: 'api.internal',
      PORT: '1001',
      ADMIN_HOST: '::1',
      ADMIN_PORT: '1002',
      MONGODB_URL: 'mongodb://db/pets',
      REDIS_URL: 'rediss://cache/2',
      REDIS_PREFIX: 'shop:',
      CURSOR_SECRET: SECRET,
      PUBLIC_URL: 'https://petstore.example/shop',
      TRUSTED_PROXY_HOPS: '3',
      EXPECTED_REPLICAS: '4',
      PLANS_FILE: aFile(JSON.stringify(plans)),
      MAX_CONNECTIONS: '8',
      MAX_IN_FLIGHT: '9',
      DOCS: 'off',
      SAMPLE_DATA: 'off',
      ID_BLOCK_SIZE: '5',
      DRAIN_DELAY_MS: '6',
      SHUTDOWN_TIMEOUT_MS: '7',
      LOG_LEVEL: 'warn',
    })
    expect(config).to.deep.equal({
      host: 'api.internal',
      port: 1001,
      adminHost: '::1',
      adminPort: 1002,
      distributed: { mongodbUrl: 'mongodb://db/pets', redisUrl: 'rediss://cache/2', redisPrefix: 'shop:' },
      cursorSecrets: [SECRET],
      publicUrl: 'https://petstore.example/shop',
      trustedProxyHops: 3,
      expectedReplicas: 4,
      plans,
      maxConnections: 8,
      maxInFlight: 9,
      hasDocs: false,
      hasSampleData: false,
      idBlockSize: 5,
      drainDelayMs: 6,
      shutdownTimeoutMs: 7,
      logLevel: 'warn',
    } satisfies Config)
  })

  it('of this process are read from its environment', () => {
    const before = process.env
    process.env = { ...URLS, ID_BLOCK_SIZE: '77' }
    try {
      expect(readProcessConfig('command').idBlockSize).to.equal(77)
      expect(() => readProcessConfig()).to.throw(ConfigError, 'CURSOR_SECRET')
    } finally {
      process.env = before
    }
  })

  it('cannot be changed after they are read, including plans and ban rules', () => {
    const config = readConfig(SHARED)
    const { plans, ban } = config.plans
    for (const part of [config, config.distributed, config.plans, plans, plans.free, plans.free.limits, ban]) expect(part).to.be.frozen
  })

  it('with several errors are rejected with all errors, one line each', () => {
    const invalid = {
      HOST: 'a b',
      PORT: '80x',
      ADMIN_HOST: '',
      ADMIN_PORT: '65536',
      CURSOR_SECRET: 'short',
      PUBLIC_URL: 'x',
      TRUSTED_PROXY_HOPS: '11',
      EXPECTED_REPLICAS: '0',
      PLANS_FILE: join(directory, 'missing'),
      DOCS: 'yes',
      SAMPLE_DATA: 'no',
      ID_BLOCK_SIZE: '0',
      DRAIN_DELAY_MS: '-1',
      SHUTDOWN_TIMEOUT_MS: '1s',
      LOG_LEVEL: 'loud',
      MONGODB_URL: 'db:27017',
      REDIS_URL: 'cache:6379',
      REDIS_PREFIX: 'a b',
      MAX_CONNECTIONS: '0',
      MAX_IN_FLIGHT: '0',
      STORAGE: 'disk',
    }
    expect(Object.keys(invalid)).to.have.members(SETTING_NAMES)
    for (const purpose of ['serve', 'command'] as const) {
      const problems = findProblems({ ...invalid, LOG_LEVELS: 'info' }, purpose)
      expect(problems.map((problem) => /^[A-Z_]+/.exec(problem)?.[0])).to.have.members([...SETTING_NAMES, 'LOG_LEVELS'])
      expect(new ConfigError(problems).message.split('\n')).to.deep.equal([
        'The settings are not valid:',
        ...problems.map((problem) => `  - ${problem}`),
      ])
    }
  })

  it('are all documented in one table with their file variants and defaults', () => {
    const rows = formatSettingsTable().split('\n')
    expect(rows).to.have.lengthOf(SETTING_NAMES.length + 2)
    for (const [index, name] of SETTING_NAMES.entries())
      expect(rows[index + 2]).to.match(new RegExp(`^\\| \`${name}\`.* \\| \\S.* \\| \\S.* \\|$`))
    expect(rows).to.include('| `PORT` | `8080` | The port of the API. `0` selects a free port, which the service prints. |')
    expect(formatSettingsTable())
      .to.include('| `REDIS_URL`, `REDIS_URL_FILE` | unset |')
      .and.include('| `CURSOR_SECRET`, `CURSOR_SECRET_FILE` | random')
  })

  describe('that are numbers', () => {
    for (const [name, min, max, others] of [
      ['PORT', 0, 65_535, {}],
      ['ADMIN_PORT', 0, 65_535, {}],
      ['TRUSTED_PROXY_HOPS', 0, 10, {}],
      ['EXPECTED_REPLICAS', 1, 10_000, {}],
      ['MAX_CONNECTIONS', 1, 1_000_000, {}],
      ['MAX_IN_FLIGHT', 1, 1_000_000, {}],
      ['ID_BLOCK_SIZE', 1, 1_000_000, {}],
      ['DRAIN_DELAY_MS', 0, 3_599_999, { SHUTDOWN_TIMEOUT_MS: '3600000' }],
      ['SHUTDOWN_TIMEOUT_MS', 1, 3_600_000, {}],
    ] as const) {
      it(`must be whole numbers in plain decimal from ${min} to ${max}: ${name}`, () => {
        for (const text of [`${min}`, `${max}`]) expect(findProblems({ ...others, [name]: text })).to.deep.equal([])
        const garbage = ['80x', 'x80', '1e3', ' 8', '8 ', '8\n', '', ' ', '8.0', '8.5', '+8', '-8', '0x10', '1_000', '1,000', '٣', 'NaN']
        for (const text of [...garbage, 'Infinity', '9'.repeat(30), `${min - 1}`, `${max + 1}`]) {
          expect(findProblems({ ...others, [name]: text }), JSON.stringify(text)).to.deep.equal([
            `${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`,
          ])
        }
      })
    }

    it('leave time to finish requests after the drain delay', () => {
      expect(findProblems({ DRAIN_DELAY_MS: '25000' })).to.deep.equal([
        'DRAIN_DELAY_MS must be less than SHUTDOWN_TIMEOUT_MS, which includes the drain delay',
      ])
      expect(findProblems({ DRAIN_DELAY_MS: '24999' })).to.deep.equal([])
    })
  })

  describe('PORT and ADMIN_PORT', () => {
    it('must differ if both servers listen on the same host, or if one listens on all IP addresses', () => {
      for (const [HOST, ADMIN_HOST] of [
        ['127.0.0.1', '127.0.0.1'],
        ['0.0.0.0', '127.0.0.1'],
        ['::', '127.0.0.1'],
        ['10.0.0.1', '0.0.0.0'],
      ]) {
        const problem = 'PORT and ADMIN_PORT are both 9090; set them to different ports'
        expect(findProblems({ HOST, ADMIN_HOST, PORT: '9090' })).to.deep.equal([problem])
      }
    })

    it('may be equal on two hosts, if both are 0, and for commands, which listen on neither', () => {
      expect(findProblems({ HOST: '10.0.0.1', PORT: '9090' })).to.deep.equal([])
      expect(findProblems({ PORT: '0', ADMIN_PORT: '0' })).to.deep.equal([])
      expect(findProblems({ PORT: '9090' }, 'command')).to.deep.equal([])
    })
  })

  it('that are words accept only the documented words, and not an empty string', () => {
    for (const [name, texts] of [
      ['HOST', ['', ' ', 'local host', 'http://localhost', 'localhost\n', 'a/b']],
      ['ADMIN_HOST', ['', ' ', 'local host', 'a,b']],
      ['DOCS', ['', 'ON', 'true', '1', 'on ', 'yes']],
      ['SAMPLE_DATA', ['', 'OFF', 'false', '0']],
      ['LOG_LEVEL', ['', 'INFO', 'verbose', '30', 'toString']],
      ['STORAGE', ['', 'MEMORY', 'disk', 'mongodb', 'memory ']],
    ] satisfies [string, string[]][]) {
      for (const text of texts) {
        const [problem, ...others] = findProblems({ [name]: text })
        expect(problem)
          .to.match(new RegExp(`^${name} must be .+, not `))
          .and.to.include(JSON.stringify(text))
        expect(others).to.deep.equal([])
      }
    }
    for (const HOST of ['0.0.0.0', '::', '::1', 'localhost', 'a-b.example']) expect(readConfig({ HOST }).host).to.equal(HOST)
    for (const LOG_LEVEL of LOG_LEVELS) expect(readConfig({ LOG_LEVEL }).logLevel).to.equal(LOG_LEVEL)
    expect(readConfig({ DOCS: 'off', SAMPLE_DATA: 'on' })).to.include({ hasDocs: false, hasSampleData: true })
  })

  describe('PUBLIC_URL', () => {
    it('is normalized for headers and loses trailing slashes', () => {
      for (const [given, kept] of [
        ['https://petstore.example', 'https://petstore.example'],
        ['https://petstore.example/', 'https://petstore.example'],
        ['http://localhost:8080/a/b//', 'http://localhost:8080/a/b'],
        ['https://münchen.example/läden', 'https://xn--mnchen-3ya.example/l%C3%A4den'],
      ] as const) {
        expect(readConfig({ PUBLIC_URL: given }).publicUrl).to.equal(kept)
      }
    })

    it('must be an http or https URL without /v1, user, query, fragment, white space or characters that end a header or link', () => {
      for (const text of [
        '',
        'petstore.example',
        '/shop',
        'ftp://petstore.example',
        'javascript:alert(1)',
        'https://',
        'https:petstore.example',
        'https:/petstore.example',
        'https://petstore.example/v1',
        'https://petstore.example/v1//',
        'https://petstore.example/v1/x/..',
        'https://petstore.example?a=b',
        'https://petstore.example#a',
        'https://user:hunter2@petstore.example',
        'https://user@petstore.example',
        ' https://petstore.example',
        'https://petstore.example ',
        'https://petstore.example\n',
        'https://petstore.example/\r\nSet-Cookie: a=b',
        'https://pet\tstore.example',
        'https://petstore.example/\u0001',
        'https://petstore.example/a>; rel="next"',
      ]) {
        expect(findProblems({ PUBLIC_URL: text })).to.deep.equal([
          `PUBLIC_URL must be an http or https URL without /v1, credentials, query or fragment, not ${JSON.stringify(text)}`,
        ])
      }
    })
  })

  describe('that are secret', () => {
    it('are read from the file of NAME_FILE, without its line end', () => {
      for (const end of ['', '\n', '\r\n'])
        expect(readConfig({ CURSOR_SECRET_FILE: aFile(SECRET + end) }).cursorSecrets).to.deep.equal([SECRET])
      const files = { MONGODB_URL_FILE: aFile(`${MONGODB_URL}\n`), REDIS_URL_FILE: aFile(`${REDIS_URL}\n`, 'redis') }
      expect(readConfig({ ...files, ...REQUIRED }).distributed).to.deep.equal({
        mongodbUrl: MONGODB_URL,
        redisUrl: REDIS_URL,
        redisPrefix: 'petstore:',
      })
    })

    it('are rejected if both NAME and NAME_FILE are set', () => {
      expect(findProblems({ CURSOR_SECRET: SECRET, CURSOR_SECRET_FILE: aFile(SECRET) })).to.deep.equal([
        'CURSOR_SECRET and CURSOR_SECRET_FILE are both set; set only one',
      ])
    })

    it('are rejected if the file cannot be read, with the reason', () => {
      expect(findProblems({ CURSOR_SECRET_FILE: join(directory, 'missing') })).to.deep.equal([
        'CURSOR_SECRET_FILE: cannot read the file (ENOENT)',
      ])
      expect(findProblems({ CURSOR_SECRET_FILE: directory })).to.deep.equal(['CURSOR_SECRET_FILE: cannot read the file (EISDIR)'])
    })

    it('are 32 bytes or more in UTF-8: CURSOR_SECRET', () => {
      for (const CURSOR_SECRET of ['x'.repeat(32), 'é'.repeat(16)])
        expect(readConfig({ CURSOR_SECRET }).cursorSecrets).to.deep.equal([CURSOR_SECRET])
      const expected = 'CURSOR_SECRET must be a secret of 32 bytes or more, or several of them separated by commas'
      for (const CURSOR_SECRET of ['x', 'x'.repeat(31), 'é'.repeat(15), `${SECRET},x`, `${SECRET},`, `,${SECRET}`])
        expect(findProblems({ CURSOR_SECRET })).to.deep.equal([expected])
      expect(findProblems({ CURSOR_SECRET: '' })).to.deep.equal([`${expected}, not empty`])
      expect(findProblems({ CURSOR_SECRET_FILE: aFile(`${'x'.repeat(31)}\n`) })).to.have.lengthOf(1)
    })

    it('may be several, separated by commas: CURSOR_SECRET', () => {
      expect(readConfig({ CURSOR_SECRET: `${SECRET},${SECRET}.` }).cursorSecrets).to.deep.equal([SECRET, `${SECRET}.`])
    })

    it('never appear in an error', () => {
      const secret = 'hunter2-too-short'
      const problems = findProblems({
        CURSOR_SECRET: secret,
        CURSOR_SECRET_FILE: secret,
        CURSOR_SECRETS: secret,
        MONGODB_URL: `mongodb:/root:${secret}@db/pets`,
        REDIS_URL: `redis:/:${secret}@cache`,
        REDIS_URI: `redis://:${secret}@cache`,
      })
      expect(problems).to.have.lengthOf.at.least(5)
      expect([...problems, ...findProblems({ CURSOR_SECRET_FILE: secret })].join('\n')).to.not.include(secret)
    })
  })

  it('that are not secret have no file variant, and setting one is an error', () => {
    for (const name of ['PUBLIC_URL', 'TRUSTED_PROXY_HOPS', 'PLANS_FILE', 'HOST']) {
      const problem = `${name} has no file variant: set ${name} instead of ${name}_FILE`
      expect(findProblems({ [`${name}_FILE`]: aFile('1') })).to.deep.equal([problem])
    }
  })

  describe('of the shared storage', () => {
    it('are URLs, which are kept unchanged', () => {
      for (const mongodbUrl of [MONGODB_URL, 'mongodb://db', 'mongodb+srv://cluster.example/pets', 'mongodb://[::1]:27017']) {
        expect(readConfig({ ...SHARED, MONGODB_URL: mongodbUrl }).distributed).to.deep.equal({
          mongodbUrl,
          redisUrl: REDIS_URL,
          redisPrefix: 'petstore:',
        })
      }
      for (const redisUrl of [REDIS_URL, 'rediss://cache', 'redis+cluster://one,two:7001', 'rediss+sentinel://:p@one,two/main']) {
        expect(readConfig({ ...SHARED, REDIS_URL: redisUrl }).distributed).to.deep.equal({
          mongodbUrl: MONGODB_URL,
          redisUrl,
          redisPrefix: 'petstore:',
        })
      }
      expect(readConfig({})).not.to.have.property('distributed')
    })

    it('are rejected with one error if they have a different scheme, no host or white space', () => {
      const garbage = [
        'db',
        'db:1',
        'http://db',
        ' mongodb://db',
        ' redis://db',
        'mongodb://d b',
        'redis://d b',
        'mongodb:/db',
        'redis+http://db',
      ]
      const withoutHost = ['', '/', '?a=b', 'user:hunter2@', ':6379', ',a'].flatMap((rest) =>
        ['mongodb', 'mongodb+srv', 'redis', 'redis+cluster', 'rediss+sentinel'].map((scheme) => `${scheme}://${rest}`),
      )
      for (const text of [...garbage, ...withoutHost]) {
        for (const [name, expected] of [
          ['MONGODB_URL', 'mongodb:// or mongodb+srv:// and names a host'],
          ['REDIS_URL', 'redis://, redis+cluster:// or redis+sentinel:// (rediss for TLS) and names a host'],
        ] as const) {
          expect(findProblems({ ...SHARED, [name]: text }), text).to.deep.equal([`${name} must be a URL that begins with ${expected}`])
        }
      }
    })

    it('are rejected with one error if one of them is empty', () => {
      for (const others of [{}, { REDIS_URL }, { NODE_ENV: 'production' }, { STORAGE: 'memory' }]) {
        expect(findProblems({ ...others, MONGODB_URL: '' })).to.deep.equal([
          'MONGODB_URL must be a URL that begins with mongodb:// or mongodb+srv:// and names a host, not empty',
        ])
      }
    })

    for (const [what, env, problem] of [
      [
        'both URLs or neither: MONGODB_URL',
        { MONGODB_URL, ...REQUIRED },
        'REDIS_URL must be set if MONGODB_URL is set: the service uses both or neither',
      ],
      [
        'both URLs or neither: REDIS_URL',
        { REDIS_URL, ...REQUIRED },
        'MONGODB_URL must be set if REDIS_URL is set: the service uses both or neither',
      ],
      [
        'a CURSOR_SECRET',
        { ...URLS, TRUSTED_PROXY_HOPS: '1' },
        'CURSOR_SECRET must be set if MONGODB_URL and REDIS_URL are set, to the same value for all replicas',
      ],
      [
        'TRUSTED_PROXY_HOPS, even if it is 0',
        { ...URLS, CURSOR_SECRET: SECRET },
        'TRUSTED_PROXY_HOPS must be set if MONGODB_URL and REDIS_URL are set: to the number of proxies in front of the service that add to X-Forwarded-For, or to 0 if there are none',
      ],
      [
        'no STORAGE=memory',
        { ...SHARED, STORAGE: 'memory' },
        'STORAGE=memory contradicts MONGODB_URL and REDIS_URL; set either STORAGE or the URLs',
      ],
      ['no sample data', { ...SHARED, SAMPLE_DATA: 'on' }, 'SAMPLE_DATA=on works only without MONGODB_URL; use petstore seed'],
    ] satisfies [string, Environment, string][]) {
      it(`require ${what}, whether the URLs come from the environment or from files`, () => {
        const withFiles: Environment = { ...env }
        for (const name of ['MONGODB_URL', 'REDIS_URL']) {
          const url = withFiles[name]
          if (url === undefined) continue
          withFiles[`${name}_FILE`] = aFile(url, name)
          delete withFiles[name]
        }
        expect(findProblems(env)).to.deep.equal([problem])
        expect(findProblems(withFiles)).to.deep.equal([problem])
        const isOnlyForServe = /^(CURSOR_SECRET|TRUSTED_PROXY_HOPS)/.test(problem)
        expect(findProblems(env, 'command')).to.deep.equal(isOnlyForServe ? [] : [problem])
      })
    }

    it('accept a CURSOR_SECRET from a file', () => {
      expect(findProblems({ ...URLS, TRUSTED_PROXY_HOPS: '0', CURSOR_SECRET_FILE: aFile(SECRET) })).to.deep.equal([])
    })

    it('turn the sample data off', () => {
      for (const env of [SHARED, { ...SHARED, SAMPLE_DATA: 'off' }]) expect(readConfig(env).hasSampleData).to.equal(false)
    })
  })

  describe('under NODE_ENV=production', () => {
    const NODE_ENV = 'production'

    it('are rejected without a choice of storage, and the error names both choices and any misspelled URL', () => {
      const [problem, ...others] = findProblems({ NODE_ENV })
      expect(problem).to.match(/^NODE_ENV=production requires a choice of storage: set MONGODB_URL and REDIS_URL, or set STORAGE=memory/)
      expect(others).to.deep.equal([])
      expect(findProblems({ NODE_ENV, MONGODB_URI: 'mongodb://db' })).to.have.lengthOf(2)
    })

    it('are accepted with STORAGE=memory, with the shared storage, and for commands', () => {
      expect(readConfig({ NODE_ENV, STORAGE: 'memory' })).to.deep.equal(readConfig({}))
      expect(readConfig({ NODE_ENV, ...SHARED })).to.have.property('distributed')
      expect(findProblems({ NODE_ENV }, 'command')).to.deep.equal([])
    })

    it('differ from any other NODE_ENV, which requires no choice', () => {
      for (const other of ['development', 'test', '', 'prod', 'Production']) expect(findProblems({ NODE_ENV: other })).to.deep.equal([])
      expect(readConfig({ STORAGE: 'memory' })).to.deep.equal(readConfig({}))
    })
  })

  it('that are misspelled are errors that name the intended setting and not the value', () => {
    for (const [name, intended] of [
      ['REDIS_URI', 'REDIS_URL'],
      ['REDISURL', 'REDIS_URL'],
      ['MONGODB_URI', 'MONGODB_URL'],
      ['MONGO_URL', 'MONGODB_URL'],
      ['MONGODB_URL_FILES', 'MONGODB_URL_FILE'],
      ['STORAGES', 'STORAGE'],
      ['PLAN_FILE', 'PLANS_FILE'],
      ['MAX_CONNECTION', 'MAX_CONNECTIONS'],
      ['MAXINFLIGHT', 'MAX_IN_FLIGHT'],
      ['SAMPLE_DATE', 'SAMPLE_DATA'],
      ['ID_BLOCKSIZE', 'ID_BLOCK_SIZE'],
      ['LOGLEVEL', 'LOG_LEVEL'],
      ['CURSOR_SECRETS_FILE', 'CURSOR_SECRET_FILE'],
      ['PUBLIC_URI', 'PUBLIC_URL'],
      ['ADMINPORT', 'ADMIN_PORT'],
    ] as const) {
      expect(findProblems({ [name]: 'hunter2' })).to.deep.equal([`${name} is not a setting; did you mean ${intended}?`])
    }
  })

  it('do not include a name of up to 8 characters in which two characters are missing', () => {
    expect(findProblems({ ADMIN_RT: '1' })).to.deep.equal([])
    expect(findProblems({ ADIN_HOT: '1' })).to.deep.equal([])
  })

  it('do not include the variables of shells, tools, CI, containers, clouds and other programs', () => {
    for (const name of FOREIGN_NAMES) expect(findProblems({ [name]: 'tcp://10.0.0.1:6379' }), name).to.deep.equal([])
    expect(findProblems({ PORT: undefined, MONGODB_URI: undefined, REDIS_URL_FILE: undefined })).to.deep.equal([])
  })

  it('report the problems of the plans file together with all others', () => {
    const missing = join(directory, 'missing')
    expect(findProblems({ PLANS_FILE: missing })).to.deep.equal([`PLANS_FILE: cannot read ${missing} (ENOENT)`])
    const path = aFile('{')
    const problems = findProblems({ PLANS_FILE: path, PORT: 'x' })
    expect(problems).to.have.lengthOf(2)
    expect(problems.join('\n')).to.include(`PLANS_FILE ${path}: not valid JSON: `).and.include('PORT must be')
  })
})

/** Returns no problems if the settings are valid. */
function findProblems(env: Environment, purpose?: Purpose): readonly string[] {
  try {
    readConfig(env, purpose)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems
  }
  return []
}
