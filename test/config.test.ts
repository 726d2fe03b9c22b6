import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Config, Purpose } from '../src/config.js'
import { ConfigError, LOG_LEVELS, readConfig, readProcessConfig } from '../src/config.js'
import { parsePlans } from '../src/plans-file.js'
import type { Plans } from '../src/core/plan.js'

type Environment = Record<string, string | undefined>

/** 32 bytes. */
const SECRET = 'correct horse battery staple 32!'

const OTHER_PLANS: Plans = {
  plans: {
    free: { limits: { minute: 11, day: 12 }, mode: 'shadow' },
    pro: { limits: { minute: 13, day: 14 }, mode: 'enforce' },
    business: { limits: { minute: 15, day: 16 }, mode: 'enforce' },
    enterprise: { limits: { minute: 17, day: 18 }, mode: 'shadow' },
  },
  ban: { graceMs: 19, minStrikes: 20, firstMs: 21, longestMs: 22, forgetAfterMs: 23 },
  failedAuthenticationsPerMinute: 24,
}

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
`
  .trim()
  .split(/\s+/)

describe('the settings', () => {
  let directory: string

  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'petstore-config-'))
  })

  after(() => rmSync(directory, { recursive: true }))

  /** The path of a new file with this content. */
  function aFile(content: string, name = 'file'): string {
    const path = join(directory, name)
    writeFileSync(path, content)
    return path
  }

  describe('when none is given', () => {
    it('are the documented defaults', () => {
      expect(readConfig({})).to.deep.equal({
        host: '127.0.0.1',
        port: 8080,
        adminHost: '127.0.0.1',
        adminPort: 9090,
        trustedProxyHops: 0,
        expectedReplicas: 1,
        plans: JSON.parse(readFileSync('config/plans.json', 'utf8')),
        maxConnections: 10_000,
        maxInFlight: 1_000,
        docs: true,
        sampleData: true,
        idBlockSize: 64,
        drainDelayMs: 0,
        shutdownTimeoutMs: 25_000,
        logLevel: 'info',
      } satisfies Config)
    })

    it('sell the plans of the interface specification', () => {
      const { plans } = readConfig({}).plans
      expect(plans.free.limits).to.deep.equal({ minute: 60, day: 1000 })
      expect(plans.pro.limits).to.deep.equal({ minute: 300, day: 10_000 })
      expect(plans.business.limits).to.deep.equal({ minute: 1000, day: 100_000 })
      expect(plans.enterprise.limits).to.equal(undefined)
    })
  })

  describe('when all are given', () => {
    it('each reach the field of their own', () => {
      const config = readConfig({
        HOST: 'api.internal',
        PORT: '1001',
        ADMIN_HOST: '::1',
        ADMIN_PORT: '1002',
        MONGODB_URL: 'mongodb://db/pets',
        REDIS_URL: 'rediss://cache/2',
        CURSOR_SECRET: SECRET,
        PUBLIC_URL: 'https://petstore.example/shop',
        TRUSTED_PROXY_HOPS: '3',
        EXPECTED_REPLICAS: '4',
        PLANS_FILE: aFile(JSON.stringify(OTHER_PLANS)),
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
        distributed: { mongodbUrl: 'mongodb://db/pets', redisUrl: 'rediss://cache/2' },
        cursorSecret: SECRET,
        publicUrl: 'https://petstore.example/shop',
        trustedProxyHops: 3,
        expectedReplicas: 4,
        plans: OTHER_PLANS,
        maxConnections: 8,
        maxInFlight: 9,
        docs: false,
        sampleData: false,
        idBlockSize: 5,
        drainDelayMs: 6,
        shutdownTimeoutMs: 7,
        logLevel: 'warn',
      } satisfies Config)
    })

    it('switch the documentation and the sample data one by one', () => {
      for (const [DOCS, SAMPLE_DATA] of [
        ['on', 'off'],
        ['off', 'on'],
        ['on', 'on'],
        ['off', 'off'],
      ] as const) {
        expect(readConfig({ DOCS, SAMPLE_DATA })).to.include({ docs: DOCS === 'on', sampleData: SAMPLE_DATA === 'on' })
      }
    })

    it('may be any of the log levels', () => {
      for (const LOG_LEVEL of LOG_LEVELS) expect(readConfig({ LOG_LEVEL }).logLevel).to.equal(LOG_LEVEL)
    })
  })

  it('of this process are read from its environment, for what it is about to do', () => {
    const before = process.env
    process.env = { ID_BLOCK_SIZE: '77', MONGODB_URL: 'mongodb://db', REDIS_URL: 'redis://cache' }
    try {
      expect(readProcessConfig('command').idBlockSize).to.equal(77)
      for (const name of ['CURSOR_SECRET', 'TRUSTED_PROXY_HOPS']) expect(() => readProcessConfig()).to.throw(ConfigError, name)
      expect(() => readProcessConfig('serve')).to.throw(ConfigError, 'CURSOR_SECRET')
    } finally {
      process.env = before
    }
  })

  it('cannot be changed once they are read', () => {
    const config = readConfig({}) as { port: number }
    expect(() => {
      config.port = 1
    }).to.throw(TypeError)
  })

  it('cannot be changed inside either: not the limits of a plan, nor the numbers of a ban', () => {
    const { plans, ban } = readConfig({}).plans
    for (const part of [readConfig({}).plans, plans, plans.free, plans.free.limits, ban]) expect(part).to.be.frozen
  })

  describe('that are numbers', () => {
    const RANGES = [
      ['PORT', 0, 65_535],
      ['ADMIN_PORT', 0, 65_535],
      ['TRUSTED_PROXY_HOPS', 0, 10],
      ['EXPECTED_REPLICAS', 1, 10_000],
      ['MAX_CONNECTIONS', 1, 1_000_000],
      ['MAX_IN_FLIGHT', 1, 1_000_000],
      ['ID_BLOCK_SIZE', 1, 1_000_000],
      ['DRAIN_DELAY_MS', 0, 3_599_999],
      ['SHUTDOWN_TIMEOUT_MS', 1, 3_600_000],
    ] as const

    for (const [name, min, max] of RANGES) {
      it(`are read whole, in plain decimal: ${name}`, () => {
        for (const text of [
          '80x',
          'x80',
          '1e3',
          ' 8',
          '8 ',
          '8\n',
          '',
          ' ',
          '8.0',
          '8.5',
          '+8',
          '-8',
          '0x10',
          '1_000',
          '1,000',
          '٣',
          'NaN',
          'Infinity',
          '9'.repeat(30),
        ]) {
          expect(toProblems({ [name]: text }), JSON.stringify(text)).to.deep.equal([
            `${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`,
          ])
        }
      })

      it(`reach from ${min} to ${max}: ${name}`, () => {
        const beside = name === 'DRAIN_DELAY_MS' ? { SHUTDOWN_TIMEOUT_MS: '3600000' } : {}
        for (const text of [`${min}`, `${max}`]) expect(() => readConfig({ ...beside, [name]: text })).not.to.throw()
        for (const text of [`${min - 1}`, `${max + 1}`]) expect(toProblems({ ...beside, [name]: text })).to.have.lengthOf(1)
      })
    }

    it('leave time to end requests in after the drain delay', () => {
      expect(toProblems({ DRAIN_DELAY_MS: '25000' })).to.have.lengthOf(1)
      expect(() => readConfig({ DRAIN_DELAY_MS: '24999' })).not.to.throw()
    })
  })

  describe('that are words', () => {
    for (const [name, texts] of [
      ['HOST', ['', ' ', 'local host', 'http://localhost', 'localhost\n', 'a/b']],
      ['ADMIN_HOST', ['', ' ', 'local host', 'a,b']],
      ['DOCS', ['', 'ON', 'true', '1', 'on ', 'yes']],
      ['SAMPLE_DATA', ['', 'OFF', 'false', '0']],
      ['LOG_LEVEL', ['', 'INFO', 'verbose', '30', 'toString']],
      ['STORAGE', ['', 'MEMORY', 'disk', 'mongodb', 'memory ']],
    ] satisfies [string, string[]][]) {
      it(`are taken as documented or not at all, an empty one too: ${name}`, () => {
        for (const text of texts) {
          const problems = toProblems({ [name]: text })
          expect(problems).to.have.lengthOf(1)
          expect(problems[0])
            .to.match(new RegExp(`^${name} must be .+, not `))
            .and.to.include(JSON.stringify(text))
        }
      })
    }

    it('may be an IPv4 address, an IPv6 address or a host name: HOST', () => {
      for (const HOST of ['0.0.0.0', '::', '::1', 'localhost', 'a-b.example']) expect(readConfig({ HOST }).host).to.equal(HOST)
    })
  })

  describe('PUBLIC_URL', () => {
    it('is kept without the slashes at its end', () => {
      for (const [given, kept] of [
        ['https://petstore.example', 'https://petstore.example'],
        ['https://petstore.example/', 'https://petstore.example'],
        ['http://localhost:8080/a/b//', 'http://localhost:8080/a/b'],
      ] as const) {
        expect(readConfig({ PUBLIC_URL: given }).publicUrl).to.equal(kept)
      }
    })

    for (const text of [
      '',
      'petstore.example',
      '/shop',
      'ftp://petstore.example',
      'javascript:alert(1)',
      'https://',
      'https://petstore.example/v1',
      'https://petstore.example/v1/',
      'https://petstore.example?a=b',
      'https://petstore.example#a',
    ]) {
      it(`is an http or https URL without /v1, user, query or fragment, so not ${JSON.stringify(text)}`, () => {
        expect(toProblems({ PUBLIC_URL: text })).to.deep.equal([
          `PUBLIC_URL must be an http or https URL without /v1, user, query or fragment, not ${JSON.stringify(text)}`,
        ])
      })
    }

    it('is taken as it stands, so white space around it is refused as it is around a number', () => {
      for (const text of [' https://petstore.example', 'https://petstore.example ', 'https://petstore.example\n']) {
        expect(toProblems({ PUBLIC_URL: text }), JSON.stringify(text)).to.have.lengthOf(1)
      }
    })

    it('brings nothing into a header that ends it or the link in it', () => {
      for (const text of [
        'https://petstore.example/\r\nSet-Cookie: a=b',
        'https://pet\tstore.example',
        'https://petstore.example/a>b',
        'https://petstore.example/a>; rel="next"',
      ]) {
        expect(toProblems({ PUBLIC_URL: text }), JSON.stringify(text)).to.have.lengthOf(1)
      }
    })

    it('has its two slashes', () => {
      for (const text of ['https:petstore.example', 'https:/petstore.example'])
        expect(toProblems({ PUBLIC_URL: text }), text).to.have.lengthOf(1)
    })

    it('is spelt as headers can carry it, and never climbs into /v1', () => {
      expect(readConfig({ PUBLIC_URL: 'https://münchen.example/läden' }).publicUrl).to.equal('https://xn--mnchen-3ya.example/l%C3%A4den')
      expect(toProblems({ PUBLIC_URL: 'https://petstore.example/\u0001' })).to.have.lengthOf(1)
      expect(toProblems({ PUBLIC_URL: 'https://petstore.example/v1/x/..' })).to.have.lengthOf(1)
    })

    it('holds no user and no password, for every link would tell them', () => {
      expect(toProblems({ PUBLIC_URL: 'https://user:hunter2@petstore.example' })).to.have.lengthOf(1)
      expect(toProblems({ PUBLIC_URL: 'https://user@petstore.example' })).to.have.lengthOf(1)
    })

    it('is without /v1, however many slashes follow', () => {
      expect(toProblems({ PUBLIC_URL: 'https://petstore.example/v1//' })).to.have.lengthOf(1)
    })
  })

  describe('that are secret', () => {
    it('come from the file that NAME_FILE names, without the line end that editors add', () => {
      expect(readConfig({ CURSOR_SECRET_FILE: aFile(`${SECRET}\n`) }).cursorSecret).to.equal(SECRET)
      expect(readConfig({ CURSOR_SECRET_FILE: aFile(`${SECRET}\r\n`) }).cursorSecret).to.equal(SECRET)
      expect(readConfig({ CURSOR_SECRET_FILE: aFile(SECRET) }).cursorSecret).to.equal(SECRET)
    })

    it('have one source: NAME and NAME_FILE together are a problem, equal or not', () => {
      const CURSOR_SECRET_FILE = aFile(SECRET)
      for (const CURSOR_SECRET of [SECRET, `${SECRET} another`]) {
        expect(toProblems({ CURSOR_SECRET, CURSOR_SECRET_FILE })).to.deep.equal([
          'CURSOR_SECRET and CURSOR_SECRET_FILE are both set; set one',
        ])
      }
    })

    it('are refused when their file cannot be read, and the problem names the file', () => {
      const path = join(directory, 'missing')
      expect(toProblems({ CURSOR_SECRET_FILE: path })).to.deep.equal(['CURSOR_SECRET_FILE: cannot read the file (ENOENT)'])
      expect(toProblems({ CURSOR_SECRET_FILE: directory })).to.deep.equal(['CURSOR_SECRET_FILE: cannot read the file (EISDIR)'])
    })

    it('are 32 bytes or more for CURSOR_SECRET, counted in UTF-8', () => {
      for (const CURSOR_SECRET of ['x'.repeat(32), 'é'.repeat(16), SECRET])
        expect(readConfig({ CURSOR_SECRET }).cursorSecret).to.equal(CURSOR_SECRET)
      for (const CURSOR_SECRET of ['', 'x', 'x'.repeat(31), 'é'.repeat(15)]) {
        expect(toProblems({ CURSOR_SECRET })).to.deep.equal(['CURSOR_SECRET must be 32 bytes or more'])
      }
      expect(toProblems({ CURSOR_SECRET_FILE: aFile(`${'x'.repeat(31)}\n`) })).to.deep.equal(['CURSOR_SECRET must be 32 bytes or more'])
      expect(toProblems({ CURSOR_SECRET_FILE: aFile('') })).to.deep.equal(['CURSOR_SECRET must be 32 bytes or more'])
    })

    it('never appear in a problem, whatever is wrong with them', () => {
      const short = 'hunter2-too-short'
      const problems = toProblems({
        CURSOR_SECRET: short,
        CURSOR_SECRET_FILE: aFile(short),
        CURSOR_SECRETS: short,
        MONGODB_URL: `mongodb:/root:${short}@db/pets`,
        REDIS_URL: `redis:/:${short}@cache`,
        REDIS_URI: `redis://:${short}@cache`,
        PORT: 'x',
      })
      expect(problems).to.have.lengthOf.at.least(7)
      expect(problems.join('\n')).not.to.include(short)
      expect(new ConfigError(problems).message).not.to.include(short)
    })
  })

  describe('of what replicas share', () => {
    const MONGODB_URL = 'mongodb://petstore:hunter2@one,two:27018/pets?replicaSet=rs&tls=true'
    const REDIS_URL = 'redis://petstore:hunter2@cache:6380/3'
    const REQUIRED = { CURSOR_SECRET: SECRET, TRUSTED_PROXY_HOPS: '0' }
    const BOTH = { MONGODB_URL, REDIS_URL, ...REQUIRED }

    it('are URLs that are kept as they are, from the environment or from a file', () => {
      for (const mongodbUrl of [MONGODB_URL, 'mongodb://db', 'mongodb+srv://cluster.example/pets']) {
        expect(readConfig({ ...BOTH, MONGODB_URL: mongodbUrl }).distributed).to.deep.equal({ mongodbUrl, redisUrl: REDIS_URL })
      }
      for (const redisUrl of [REDIS_URL, 'rediss://cache', 'redis+cluster://one,two:7001', 'rediss+sentinel://one,two/main']) {
        expect(readConfig({ ...BOTH, REDIS_URL: redisUrl }).distributed).to.deep.equal({ mongodbUrl: MONGODB_URL, redisUrl })
      }
      const files = { MONGODB_URL_FILE: aFile(`${MONGODB_URL}\n`), REDIS_URL_FILE: aFile(`${REDIS_URL}\n`, 'redis'), ...REQUIRED }
      expect(readConfig(files).distributed).to.deep.equal({ mongodbUrl: MONGODB_URL, redisUrl: REDIS_URL })
    })

    it('are absent where everything is kept in the process', () => {
      expect(readConfig({})).not.to.have.property('distributed')
    })

    it('are both there or neither, from the environment or from a file', () => {
      const faultOf = (missing: string, there: string) => `${missing} must be set with ${there}: replicas share both or neither`
      for (const [there, missing, url] of [
        ['MONGODB_URL', 'REDIS_URL', MONGODB_URL],
        ['REDIS_URL', 'MONGODB_URL', REDIS_URL],
      ] as const) {
        expect(toProblems({ [there]: url, ...REQUIRED })).to.deep.equal([faultOf(missing, there)])
        expect(toProblems({ [`${there}_FILE`]: aFile(url), ...REQUIRED })).to.deep.equal([faultOf(missing, there)])
      }
    })

    it('are refused as anything else, without a repetition', () => {
      for (const text of [
        '',
        ' ',
        'mongodb',
        'db:27017',
        'mongodb://',
        'mongodb:/db',
        'http://db',
        'redis://db',
        ' mongodb://db',
        'mongodb://d b',
      ]) {
        const problem = 'MONGODB_URL must be a URL that begins with mongodb:// or mongodb+srv://'
        expect(toProblems({ ...BOTH, MONGODB_URL: text }), JSON.stringify(text)).to.deep.equal([problem])
      }
      for (const text of [
        '',
        ' ',
        'redis',
        'cache:6379',
        'redis://',
        'http://cache',
        'redis+http://cache',
        ' redis://cache',
        'redis://c e',
      ]) {
        const problem = 'REDIS_URL must be a URL that begins with redis://, redis+cluster:// or redis+sentinel:// (rediss for TLS)'
        expect(toProblems({ ...BOTH, REDIS_URL: text }), JSON.stringify(text)).to.deep.equal([problem])
      }
      expect(toProblems({ MONGODB_URL_FILE: aFile('hunter2'), REDIS_URL_FILE: aFile('hunter2'), ...REQUIRED })).to.have.lengthOf(2)
    })

    it('want a CURSOR_SECRET that all replicas share, from the environment or from a file', () => {
      const problem = 'CURSOR_SECRET must be set with MONGODB_URL and REDIS_URL, to the same value for all replicas'
      const TRUSTED_PROXY_HOPS = '1'
      expect(toProblems({ MONGODB_URL, REDIS_URL, TRUSTED_PROXY_HOPS })).to.deep.equal([problem])
      expect(toProblems({ MONGODB_URL_FILE: aFile(MONGODB_URL), REDIS_URL, TRUSTED_PROXY_HOPS })).to.deep.equal([problem])
      expect(toProblems(BOTH)).to.deep.equal([])
      expect(toProblems({ MONGODB_URL, REDIS_URL, TRUSTED_PROXY_HOPS, CURSOR_SECRET_FILE: aFile(SECRET) })).to.deep.equal([])
    })

    it('require TRUSTED_PROXY_HOPS, even if it is 0, and the error says what to set it to', () => {
      const problem =
        'TRUSTED_PROXY_HOPS must be set with MONGODB_URL and REDIS_URL: to the number of proxies in front of the service that add to X-Forwarded-For, or to 0 if there are none'
      for (const urls of [
        { MONGODB_URL, REDIS_URL },
        { MONGODB_URL_FILE: aFile(MONGODB_URL), REDIS_URL },
      ])
        expect(toProblems({ ...urls, CURSOR_SECRET: SECRET })).to.deep.equal([problem])
      expect(toProblems({ MONGODB_URL, REDIS_URL, CURSOR_SECRET: SECRET, TRUSTED_PROXY_HOPS_FILE: aFile('1') })).to.deep.equal([problem])
      for (const hops of [0, 1, 10]) expect(readConfig({ ...BOTH, TRUSTED_PROXY_HOPS: `${hops}` }).trustedProxyHops).to.equal(hops)
      expect(readConfig({}).trustedProxyHops).to.equal(0)
    })

    it('require neither CURSOR_SECRET nor TRUSTED_PROXY_HOPS for a command that serves nothing', () => {
      const { cursorSecret, trustedProxyHops, distributed } = readConfig({ MONGODB_URL, REDIS_URL }, 'command')
      expect([cursorSecret, trustedProxyHops, distributed?.mongodbUrl]).to.deep.equal([undefined, 0, MONGODB_URL])
    })

    it('contradict STORAGE=memory, also for a command', () => {
      const problem = 'STORAGE=memory contradicts MONGODB_URL and REDIS_URL; set either STORAGE or the URLs'
      expect(toProblems({ ...BOTH, STORAGE: 'memory' })).to.deep.equal([problem])
      expect(toProblems({ ...REQUIRED, REDIS_URL, MONGODB_URL_FILE: aFile(MONGODB_URL), STORAGE: 'memory' })).to.deep.equal([problem])
      expect(toProblems({ MONGODB_URL, REDIS_URL, STORAGE: 'memory' }, 'command')).to.deep.equal([problem])
    })

    it('are read with every other problem for a command, too', () => {
      expect(() => readConfig({ MONGODB_URL, REDIS_URL, CURSOR_SECRET: 'short', PORT: 'x', LOGLEVEL: 'info' }, 'command'))
        .to.throw(ConfigError)
        .with.property('problems')
        .that.has.lengthOf(3)
    })

    it('leave the sample data out, and refuse to be given any: an empty store must not fill up by itself', () => {
      expect(readConfig(BOTH).sampleData).to.equal(false)
      expect(readConfig({ ...BOTH, SAMPLE_DATA: 'off' }).sampleData).to.equal(false)
      const problem = 'SAMPLE_DATA=on works only without MONGODB_URL; use petstore seed'
      expect(toProblems({ ...BOTH, SAMPLE_DATA: 'on' })).to.deep.equal([problem])
    })
  })

  describe('under NODE_ENV=production', () => {
    const NODE_ENV = 'production'
    const URLS = { MONGODB_URL: 'mongodb://db', REDIS_URL: 'redis://cache' }

    it('are rejected without a choice of storage, and the error names both choices', () => {
      const problems = toProblems({ NODE_ENV })
      expect(problems).to.have.lengthOf(1)
      expect(problems[0])
        .to.match(/^NODE_ENV=production requires a choice of storage: /)
        .and.include('set MONGODB_URL and REDIS_URL')
        .and.include('STORAGE=memory')
    })

    it('keep everything in the process with STORAGE=memory', () => {
      expect(readConfig({ NODE_ENV, STORAGE: 'memory' })).to.not.have.property('distributed')
    })

    it('keep everything in MongoDB and Redis with their URLs', () => {
      expect(readConfig({ NODE_ENV, ...URLS, CURSOR_SECRET: SECRET, TRUSTED_PROXY_HOPS: '1' })).to.have.property('distributed')
    })

    it('require no choice for a command, which keeps no data in its process', () => {
      expect(toProblems({ NODE_ENV }, 'command')).to.deep.equal([])
    })

    it('report a misspelled URL in addition to the missing choice', () => {
      expect(toProblems({ NODE_ENV, MONGODB_URI: 'mongodb://db' })).to.have.lengthOf(2)
    })

    it('require no choice with any other NODE_ENV', () => {
      for (const other of ['development', 'test', '', 'prod', 'Production']) expect(toProblems({ NODE_ENV: other })).to.deep.equal([])
    })
  })

  it('accept STORAGE=memory outside production, where it changes nothing', () => {
    expect(readConfig({ STORAGE: 'memory' })).to.deep.equal(readConfig({}))
  })

  describe('with several problems', () => {
    it('report them all together, each with its name, and take effect in none', () => {
      const problems = toProblems({
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
        MAX_CONNECTIONS: '0',
        MAX_IN_FLIGHT: '0',
        STORAGE: 'disk',
        LOG_LEVELS: 'info',
      })
      const names = problems.map((problem) => /^[A-Z_]+/.exec(problem)?.[0])
      expect(names).to.have.members([
        'HOST',
        'PORT',
        'ADMIN_HOST',
        'ADMIN_PORT',
        'CURSOR_SECRET',
        'PUBLIC_URL',
        'TRUSTED_PROXY_HOPS',
        'EXPECTED_REPLICAS',
        'PLANS_FILE',
        'DOCS',
        'SAMPLE_DATA',
        'ID_BLOCK_SIZE',
        'DRAIN_DELAY_MS',
        'SHUTDOWN_TIMEOUT_MS',
        'LOG_LEVEL',
        'MONGODB_URL',
        'REDIS_URL',
        'MAX_CONNECTIONS',
        'MAX_IN_FLIGHT',
        'STORAGE',
        'LOG_LEVELS',
      ])
    })

    it('say so in the message, a line for each', () => {
      const { message } = new ConfigError(['first problem', 'second problem'])
      expect(message.split('\n')).to.deep.equal(['The settings are not valid:', '  - first problem', '  - second problem'])
    })
  })

  describe('that do not exist', () => {
    for (const [name, meant] of [
      ['REDIS_URI', 'REDIS_URL'],
      ['REDIS_URLS', 'REDIS_URL'],
      ['REDISURL', 'REDIS_URL'],
      ['MONGODB_URI', 'MONGODB_URL'],
      ['MONGO_URL', 'MONGODB_URL'],
      ['MONGODB_URL_FILES', 'MONGODB_URL_FILE'],
      ['STORAGES', 'STORAGE'],
      ['TRUSTED_PROXY_HOP', 'TRUSTED_PROXY_HOPS'],
      ['TRUSTED_PROXYHOPS', 'TRUSTED_PROXY_HOPS'],
      ['EXPECTED_REPLICA', 'EXPECTED_REPLICAS'],
      ['PLAN_FILE', 'PLANS_FILE'],
      ['MAX_CONNECTION', 'MAX_CONNECTIONS'],
      ['MAX_INFLIGHT', 'MAX_IN_FLIGHT'],
      ['MAXINFLIGHT', 'MAX_IN_FLIGHT'],
      ['SAMPLE_DATE', 'SAMPLE_DATA'],
      ['ID_BLOCKSIZE', 'ID_BLOCK_SIZE'],
      ['DRAIN_DELAYS_MS', 'DRAIN_DELAY_MS'],
      ['SHUTDOWN_TIMEOUTS_MS', 'SHUTDOWN_TIMEOUT_MS'],
      ['LOGLEVEL', 'LOG_LEVEL'],
      ['LOG_LEVELS', 'LOG_LEVEL'],
      ['CURSOR_SECRETS', 'CURSOR_SECRET'],
      ['CURSOR_SECRETS_FILE', 'CURSOR_SECRET_FILE'],
      ['PUBLIC_URI', 'PUBLIC_URL'],
      ['ADMINPORT', 'ADMIN_PORT'],
      ['ADMIN_HOSTS', 'ADMIN_HOST'],
    ] as const) {
      it(`and are near misses are errors that name the setting but not the value: ${name}`, () => {
        expect(toProblems({ [name]: 'hunter2' })).to.deep.equal([`${name} is not a setting; did you mean ${meant}?`])
      })
    }

    it('and belong to shells, tools, CI, containers, clouds and other programs are ignored', () => {
      for (const name of FOREIGN_NAMES) expect(toProblems({ [name]: 'tcp://10.0.0.1:6379' }), name).to.deep.equal([])
    })

    it('and are unset are none', () => {
      expect(() => readConfig({ PORT: undefined, MONGODB_URI: undefined, REDIS_URL_FILE: undefined })).not.to.throw()
    })

    it('and are set by Kubernetes for each service of a namespace are ignored', () => {
      const services = [
        'REDIS',
        'MONGODB',
        'REDIS_MASTER',
        'REDIS_SENTINEL_0',
        'MONGODB_HEADLESS',
        'LOG_COLLECTOR',
        'ADMIN_UI',
        'PETSTORE',
        'DOCS',
      ]
      const links = services.map((service) => ({
        [`${service}_SERVICE_HOST`]: '10.0.0.1',
        [`${service}_SERVICE_PORT`]: '6379',
        [`${service}_SERVICE_PORT_TCP_REDIS`]: '6379',
        [`${service}_PORT`]: 'tcp://10.0.0.1:6379',
        [`${service}_PORT_6379_TCP`]: 'tcp://10.0.0.1:6379',
        [`${service}_PORT_6379_TCP_PROTO`]: 'tcp',
        [`${service}_PORT_6379_TCP_PORT`]: '6379',
        [`${service}_PORT_6379_TCP_ADDR`]: '10.0.0.1',
      }))
      expect(() => readConfig(Object.assign({}, ...links) as Environment)).not.to.throw()
    })
  })

  describe('of the plans file', () => {
    /** The problems of a plans file in which the value at `path` is another; undefined takes it out. */
    function faultsWith(path: string, value: unknown): readonly string[] {
      const file = aFile(JSON.stringify(changed(OTHER_PLANS, path.split('.'), value)))
      const problems = toProblems({ PLANS_FILE: file })
      for (const problem of problems) expect(problem).to.include(`PLANS_FILE ${file}: `)
      return problems.map((problem) => problem.slice(`PLANS_FILE ${file}: `.length))
    }

    it('are read with the mode enforce where none is given, and limits of enterprise as they are given or not', () => {
      const free = { limits: { minute: 11, day: 12 } }
      const text = JSON.stringify({ ...OTHER_PLANS, plans: { ...OTHER_PLANS.plans, free, enterprise: {} } })
      const { plans } = readConfig({ PLANS_FILE: aFile(text) })
      expect(plans.plans.free).to.deep.equal({ limits: { minute: 11, day: 12 }, mode: 'enforce' })
      expect(plans.plans.enterprise).to.deep.equal({ mode: 'enforce' })
    })

    it('accept limits up to 2^31 - 1, the maximum of the int32 quota headers, and the error for more names it', () => {
      for (const path of ['plans.free.limits.minute', 'plans.enterprise.limits.day', 'failedAuthenticationsPerMinute']) {
        expect(faultsWith(path, 2_147_483_647)).to.deep.equal([])
        expect(faultsWith(path, 2_147_483_648)[0]).to.match(/2147483647/)
      }
    })

    it('may make the longest ban as long as the first', () => {
      expect(faultsWith('ban.longestMs', OTHER_PLANS.ban.firstMs)).to.deep.equal([])
    })

    for (const [what, path, value, place] of [
      ['an unknown plan', 'plans.gold', { limits: { minute: 1, day: 2 } }, 'plans'],
      ['an unknown key at the top', 'bans', {}, 'the file'],
      ['an unknown key of a plan', 'plans.pro.price', 7, 'plans.pro'],
      ['an unknown window', 'plans.pro.limits.hour', 7, 'plans.pro.limits'],
      ['an unknown number of the ban', 'ban.lastMs', 7, 'ban'],
      ['a negative limit', 'plans.free.limits.minute', -1, 'plans.free.limits.minute'],
      ['a limit of 0', 'plans.free.limits.day', 0, 'plans.free.limits.day'],
      ['a fractional limit', 'plans.pro.limits.minute', 1.5, 'plans.pro.limits.minute'],
      ['a limit as text', 'plans.pro.limits.minute', '60', 'plans.pro.limits.minute'],
      ['a limit beyond what a double counts', 'plans.pro.limits.day', 1e300, 'plans.pro.limits.day'],
      ['a minute limit beyond int32', 'plans.pro.limits.minute', 2_147_483_648, 'plans.pro.limits.minute'],
      ['a day limit beyond int32', 'plans.enterprise.limits.day', 2_147_483_648, 'plans.enterprise.limits.day'],
      ['a failure limit beyond int32', 'failedAuthenticationsPerMinute', 2_147_483_648, 'failedAuthenticationsPerMinute'],
      ['a limit of null', 'plans.enterprise.limits', null, 'plans.enterprise.limits'],
      ['a missing window', 'plans.business.limits.day', undefined, 'plans.business.limits.day'],
      ['missing limits', 'plans.business.limits', undefined, 'plans.business.limits'],
      ['a missing plan', 'plans.pro', undefined, 'plans.pro'],
      ['a missing enterprise plan', 'plans.enterprise', undefined, 'plans.enterprise'],
      ['no plans at all', 'plans', undefined, 'plans'],
      ['an unknown mode', 'plans.free.mode', 'off', 'plans.free.mode'],
      ['no ban', 'ban', undefined, 'ban'],
      ['a missing number of the ban', 'ban.minStrikes', undefined, 'ban.minStrikes'],
      ['no strikes', 'ban.minStrikes', 0, 'ban.minStrikes'],
      ['a negative grace', 'ban.graceMs', -1, 'ban.graceMs'],
      ['a first ban of no length', 'ban.firstMs', 0, 'ban.firstMs'],
      ['a longest ban below the first', 'ban.longestMs', 20, 'ban'],
      ['no limit of failed authentications', 'failedAuthenticationsPerMinute', 0, 'failedAuthenticationsPerMinute'],
      ['a missing limit of failed authentications', 'failedAuthenticationsPerMinute', undefined, 'failedAuthenticationsPerMinute'],
    ] satisfies [string, string, unknown, string][]) {
      it(`are refused with ${what}, and the problem names the place`, () => {
        const problems = faultsWith(path, value)
        expect(problems).to.have.lengthOf(1)
        expect(problems[0]).to.match(new RegExp(`^${place.replaceAll('.', '\\.')}: .`))
      })
    }

    it('are refused with what is unknown in them by its name', () => {
      expect(faultsWith('plans.pro.price', 7)[0]).to.include('price')
      expect(faultsWith('bans', {})[0]).to.include('bans')
    })

    it('say which two numbers of the ban contradict each other', () => {
      expect(faultsWith('ban.longestMs', 20)[0]).to.include('longestMs').and.to.include('firstMs')
    })

    it('report all their problems together, and with those of other settings', () => {
      const text = JSON.stringify(changed(changed(OTHER_PLANS, ['plans', 'free', 'limits', 'minute'], -1), ['ban', 'firstMs'], 0))
      expect(toProblems({ PLANS_FILE: aFile(text), PORT: 'x' })).to.have.lengthOf(3)
    })

    for (const text of ['', '{', 'plans: {}', '{"plans":{},}', '// comment\n{}']) {
      it(`are refused when it is no JSON: ${JSON.stringify(text)}`, () => {
        const path = aFile(text)
        const problems = toProblems({ PLANS_FILE: path })
        expect(problems).to.have.lengthOf(1)
        expect(problems[0]).to.include(`PLANS_FILE ${path}: no JSON`)
      })
    }

    for (const text of ['null', '[]', '7', '"plans"']) {
      it(`are refused when it is JSON of another kind: ${text}`, () => {
        expect(parsePlans(text)).to.have.property('problems').with.lengthOf(1)
      })
    }

    it('are refused when it is not there', () => {
      const path = join(directory, 'missing')
      expect(toProblems({ PLANS_FILE: path })).to.deep.equal([`PLANS_FILE: cannot read ${path} (ENOENT)`])
    })
  })
})

/** None when the settings are usable. */
function toProblems(env: Environment, purpose?: Purpose): readonly string[] {
  try {
    readConfig(env, purpose)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const problem of error.problems) expect(error.message).to.include(problem)
    return error.problems
  }
  return []
}

function changed(tree: unknown, [first, ...rest]: readonly string[], value: unknown): unknown {
  if (first === undefined) return value
  const { [first]: before, ...others } = tree as Record<string, unknown>
  const after = changed(before, rest, value)
  return after === undefined ? others : { ...others, [first]: after }
}
