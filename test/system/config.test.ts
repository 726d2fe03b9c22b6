import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Config } from '../../src/config.js'
import { ConfigError, LOG_LEVELS, readConfig, readProcessConfig } from '../../src/config.js'
import { parsePlans } from '../../src/plans-file.js'
import type { Plans } from '../../src/core/plan.js'

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
        maxConnections: 10_000,
        maxInFlight: 1_000,
        plans: JSON.parse(readFileSync('config/plans.json', 'utf8')),
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
        maxConnections: 10_000,
        maxInFlight: 1_000,
        plans: OTHER_PLANS,
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
      expect(() => readProcessConfig()).to.throw(ConfigError, 'CURSOR_SECRET')
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
          expect(faultsOf({ [name]: text }), JSON.stringify(text)).to.deep.equal([
            `${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`,
          ])
        }
      })

      it(`reach from ${min} to ${max}: ${name}`, () => {
        const beside = name === 'DRAIN_DELAY_MS' ? { SHUTDOWN_TIMEOUT_MS: '3600000' } : {}
        for (const text of [`${min}`, `${max}`]) expect(() => readConfig({ ...beside, [name]: text })).not.to.throw()
        for (const text of [`${min - 1}`, `${max + 1}`]) expect(faultsOf({ ...beside, [name]: text })).to.have.lengthOf(1)
      })
    }

    it('leave time to end requests in after the drain delay', () => {
      expect(faultsOf({ DRAIN_DELAY_MS: '25000' })).to.have.lengthOf(1)
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
    ] satisfies [string, string[]][]) {
      it(`are taken as documented or not at all, an empty one too: ${name}`, () => {
        for (const text of texts) {
          const faults = faultsOf({ [name]: text })
          expect(faults).to.have.lengthOf(1)
          expect(faults[0])
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
        expect(faultsOf({ PUBLIC_URL: text })).to.deep.equal([
          `PUBLIC_URL must be an http or https URL without /v1, user, query or fragment, not ${JSON.stringify(text)}`,
        ])
      })
    }

    it('is taken as it stands, so white space around it is refused as it is around a number', () => {
      for (const text of [' https://petstore.example', 'https://petstore.example ', 'https://petstore.example\n']) {
        expect(faultsOf({ PUBLIC_URL: text }), JSON.stringify(text)).to.have.lengthOf(1)
      }
    })

    it('brings nothing into a header that ends it or the link in it', () => {
      for (const text of [
        'https://petstore.example/\r\nSet-Cookie: a=b',
        'https://pet\tstore.example',
        'https://petstore.example/a>b',
        'https://petstore.example/a>; rel="next"',
      ]) {
        expect(faultsOf({ PUBLIC_URL: text }), JSON.stringify(text)).to.have.lengthOf(1)
      }
    })

    it('has its two slashes', () => {
      for (const text of ['https:petstore.example', 'https:/petstore.example'])
        expect(faultsOf({ PUBLIC_URL: text }), text).to.have.lengthOf(1)
    })

    it('is spelt as headers can carry it, and never climbs into /v1', () => {
      expect(readConfig({ PUBLIC_URL: 'https://münchen.example/läden' }).publicUrl).to.equal('https://xn--mnchen-3ya.example/l%C3%A4den')
      expect(faultsOf({ PUBLIC_URL: 'https://petstore.example/\u0001' })).to.have.lengthOf(1)
      expect(faultsOf({ PUBLIC_URL: 'https://petstore.example/v1/x/..' })).to.have.lengthOf(1)
    })

    it('holds no user and no password, for every link would tell them', () => {
      expect(faultsOf({ PUBLIC_URL: 'https://user:hunter2@petstore.example' })).to.have.lengthOf(1)
      expect(faultsOf({ PUBLIC_URL: 'https://user@petstore.example' })).to.have.lengthOf(1)
    })

    it('is without /v1, however many slashes follow', () => {
      expect(faultsOf({ PUBLIC_URL: 'https://petstore.example/v1//' })).to.have.lengthOf(1)
    })
  })

  describe('that are secret', () => {
    it('come from the file that NAME_FILE names, without the line end that editors add', () => {
      expect(readConfig({ CURSOR_SECRET_FILE: aFile(`${SECRET}\n`) }).cursorSecret).to.equal(SECRET)
      expect(readConfig({ CURSOR_SECRET_FILE: aFile(`${SECRET}\r\n`) }).cursorSecret).to.equal(SECRET)
      expect(readConfig({ CURSOR_SECRET_FILE: aFile(SECRET) }).cursorSecret).to.equal(SECRET)
    })

    it('have one source: NAME and NAME_FILE together are a fault, equal or not', () => {
      const CURSOR_SECRET_FILE = aFile(SECRET)
      for (const CURSOR_SECRET of [SECRET, `${SECRET} another`]) {
        expect(faultsOf({ CURSOR_SECRET, CURSOR_SECRET_FILE })).to.deep.equal([
          'CURSOR_SECRET and CURSOR_SECRET_FILE are both set; set one',
        ])
      }
    })

    it('are refused when their file cannot be read, and the fault names the file', () => {
      const path = join(directory, 'missing')
      expect(faultsOf({ CURSOR_SECRET_FILE: path })).to.deep.equal(['CURSOR_SECRET_FILE: cannot read the file that it names (ENOENT)'])
      expect(faultsOf({ CURSOR_SECRET_FILE: directory })).to.deep.equal(['CURSOR_SECRET_FILE: cannot read the file that it names (EISDIR)'])
    })

    it('are 32 bytes or more for CURSOR_SECRET, counted in UTF-8', () => {
      for (const CURSOR_SECRET of ['x'.repeat(32), 'é'.repeat(16), SECRET])
        expect(readConfig({ CURSOR_SECRET }).cursorSecret).to.equal(CURSOR_SECRET)
      for (const CURSOR_SECRET of ['', 'x', 'x'.repeat(31), 'é'.repeat(15)]) {
        expect(faultsOf({ CURSOR_SECRET })).to.deep.equal(['CURSOR_SECRET must be 32 bytes or more'])
      }
      expect(faultsOf({ CURSOR_SECRET_FILE: aFile(`${'x'.repeat(31)}\n`) })).to.deep.equal(['CURSOR_SECRET must be 32 bytes or more'])
      expect(faultsOf({ CURSOR_SECRET_FILE: aFile('') })).to.deep.equal(['CURSOR_SECRET must be 32 bytes or more'])
    })

    it('never appear in a fault, whatever is wrong with them', () => {
      const short = 'hunter2-too-short'
      const faults = faultsOf({
        CURSOR_SECRET: short,
        CURSOR_SECRET_FILE: aFile(short),
        CURSOR_SECRETS: short,
        MONGODB_URL: `mongodb:/root:${short}@db/pets`,
        REDIS_URL: `redis:/:${short}@cache`,
        REDIS_URI: `redis://:${short}@cache`,
        MONGODB_PASSWORD: short,
        PORT: 'x',
      })
      expect(faults).to.have.lengthOf.at.least(7)
      expect(faults.join('\n')).not.to.include(short)
      expect(new ConfigError(faults).message).not.to.include(short)
    })
  })

  describe('of what replicas share', () => {
    const MONGODB_URL = 'mongodb://petstore:hunter2@one,two:27018/pets?replicaSet=rs&tls=true'
    const REDIS_URL = 'redis://petstore:hunter2@cache:6380/3'
    const BOTH = { MONGODB_URL, REDIS_URL, CURSOR_SECRET: SECRET }

    it('are URLs that are kept as they are, from the environment or from a file', () => {
      for (const mongodbUrl of [MONGODB_URL, 'mongodb://db', 'mongodb+srv://cluster.example/pets']) {
        expect(readConfig({ ...BOTH, MONGODB_URL: mongodbUrl }).distributed).to.deep.equal({ mongodbUrl, redisUrl: REDIS_URL })
      }
      for (const redisUrl of [REDIS_URL, 'rediss://cache', 'redis+cluster://one,two:7001', 'rediss+sentinel://one,two/main']) {
        expect(readConfig({ ...BOTH, REDIS_URL: redisUrl }).distributed).to.deep.equal({ mongodbUrl: MONGODB_URL, redisUrl })
      }
      const files = { MONGODB_URL_FILE: aFile(`${MONGODB_URL}\n`), REDIS_URL_FILE: aFile(`${REDIS_URL}\n`, 'redis'), CURSOR_SECRET: SECRET }
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
        expect(faultsOf({ [there]: url, CURSOR_SECRET: SECRET })).to.deep.equal([faultOf(missing, there)])
        expect(faultsOf({ [`${there}_FILE`]: aFile(url), CURSOR_SECRET: SECRET })).to.deep.equal([faultOf(missing, there)])
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
        const fault = 'MONGODB_URL must be a URL that begins with mongodb:// or mongodb+srv://'
        expect(faultsOf({ ...BOTH, MONGODB_URL: text }), JSON.stringify(text)).to.deep.equal([fault])
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
        const fault = 'REDIS_URL must be a URL that begins with redis://, redis+cluster:// or redis+sentinel:// (rediss for TLS)'
        expect(faultsOf({ ...BOTH, REDIS_URL: text }), JSON.stringify(text)).to.deep.equal([fault])
      }
      expect(faultsOf({ MONGODB_URL_FILE: aFile('hunter2'), REDIS_URL_FILE: aFile('hunter2'), CURSOR_SECRET: SECRET })).to.have.lengthOf(2)
    })

    it('want a CURSOR_SECRET that all replicas share, from the environment or from a file', () => {
      const fault = 'CURSOR_SECRET must be set with MONGODB_URL and REDIS_URL, to the same value for all replicas'
      expect(faultsOf({ MONGODB_URL, REDIS_URL })).to.deep.equal([fault])
      expect(faultsOf({ MONGODB_URL_FILE: aFile(MONGODB_URL), REDIS_URL })).to.deep.equal([fault])
      expect(faultsOf(BOTH)).to.deep.equal([])
      expect(faultsOf({ MONGODB_URL, REDIS_URL, CURSOR_SECRET_FILE: aFile(SECRET) })).to.deep.equal([])
    })

    it('want no CURSOR_SECRET for a command, which serves nothing', () => {
      const { cursorSecret, distributed } = readConfig({ MONGODB_URL, REDIS_URL }, 'command')
      expect([cursorSecret, distributed?.mongodbUrl]).to.deep.equal([undefined, MONGODB_URL])
    })

    it('are read with every other fault for a command, too', () => {
      expect(() => readConfig({ MONGODB_URL, REDIS_URL, CURSOR_SECRET: 'short', PORT: 'x', LOG_LEVELS: 'info' }, 'command'))
        .to.throw(ConfigError)
        .with.property('faults')
        .that.has.lengthOf(3)
    })

    it('leave the sample data out, and refuse to be given any: an empty store must not fill up by itself', () => {
      expect(readConfig(BOTH).sampleData).to.equal(false)
      expect(readConfig({ ...BOTH, SAMPLE_DATA: 'off' }).sampleData).to.equal(false)
      const fault = 'SAMPLE_DATA is for a process without MONGODB_URL; use petstore seed'
      expect(faultsOf({ ...BOTH, SAMPLE_DATA: 'on' })).to.deep.equal([fault])
    })
  })

  describe('with several faults', () => {
    it('report them all together, each with its name, and take effect in none', () => {
      const faults = faultsOf({
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
        LOG_LEVELS: 'info',
      })
      const names = faults.map((fault) => /^[A-Z_]+/.exec(fault)?.[0])
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
        'LOG_LEVELS',
      ])
    })

    it('say so in the message, a line for each', () => {
      const { message } = new ConfigError(['first fault', 'second fault'])
      expect(message.split('\n')).to.deep.equal(['The settings are not usable:', '  - first fault', '  - second fault'])
    })
  })

  describe('that do not exist', () => {
    for (const [name, meant] of [
      ['REDIS_URI', 'REDIS_URL'],
      ['MONGODB_URI', 'MONGODB_URL'],
      ['MONGODB_PASSWORD', 'MONGODB_URL_FILE'],
      ['TRUSTED_PROXIES', 'TRUSTED_PROXY_HOPS'],
      ['TRUSTED_PROXY_HOP', 'TRUSTED_PROXY_HOPS'],
      ['EXPECTED_REPLICA', 'EXPECTED_REPLICAS'],
      ['PLANS_PATH', 'PLANS_FILE'],
      ['SAMPLE_DATE', 'SAMPLE_DATA'],
      ['ID_BLOCKSIZE', 'ID_BLOCK_SIZE'],
      ['DRAIN_DELAY', 'DRAIN_DELAY_MS'],
      ['SHUTDOWN_TIMEOUT', 'SHUTDOWN_TIMEOUT_MS'],
      ['LOG_LEVEL_FILE', 'LOG_LEVEL'],
      ['CURSOR_SECRETS', 'CURSOR_SECRET'],
      ['PUBLIC_URLS', 'PUBLIC_URL'],
      ['ADMIN_PORTS', 'ADMIN_PORT'],
      ['DOCS_ENABLED', 'DOCS'],
    ] as const) {
      it(`and begin like one that does are a fault that names it: ${name}`, () => {
        const faults = faultsOf({ [name]: 'on' })
        expect(faults).to.have.lengthOf(1)
        expect(faults[0]).to.match(new RegExp(`^${name} is no setting; .*\\b${meant}\\b`))
      })
    }

    it('and begin like none are somebody else’s', () => {
      const others = {
        PATH: '/bin',
        HOME: '/root',
        NODE_ENV: 'test',
        npm_config_cache: 'x',
        HOSTNAME: 'a',
        PORTAL: 'b',
        LOGNAME: 'c',
        DOCSIS: 'd',
        IDEA: 'e',
        REDISTRIBUTE: 'f',
        redis_url: 'g',
      }
      expect(() => readConfig(others)).not.to.throw()
    })

    it('and are unset are none', () => {
      expect(() => readConfig({ PORT: undefined, MONGODB_URL: undefined, REDIS_URL_FILE: undefined })).not.to.throw()
    })

    it('but are what Kubernetes says of the services of a namespace, whatever their names, are let be', () => {
      const services = ['REDIS', 'MONGODB', 'REDIS_MASTER', 'REDIS_SENTINEL_0', 'MONGODB_HEADLESS', 'LOG_COLLECTOR', 'ADMIN_UI']
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

    it('that only end like what Kubernetes says are pointed out', () => {
      for (const name of ['PUBLIC_PORT', 'ADMIN_LISTEN_PORT', 'SHUTDOWN_SERVICE_HOST'])
        expect(faultsOf({ [name]: '1' })).to.have.lengthOf(1)
    })

    it('but are the image names of the test run are let be', () => {
      expect(() => readConfig({ REDIS_IMAGE: 'redis:8', MONGODB_IMAGE: 'mongo:8' })).not.to.throw()
    })
  })

  describe('of the plans file', () => {
    /** The faults of a plans file in which the value at `path` is another; undefined takes it out. */
    function faultsWith(path: string, value: unknown): readonly string[] {
      const file = aFile(JSON.stringify(changed(OTHER_PLANS, path.split('.'), value)))
      const faults = faultsOf({ PLANS_FILE: file })
      for (const fault of faults) expect(fault).to.include(`PLANS_FILE ${file}: `)
      return faults.map((fault) => fault.slice(`PLANS_FILE ${file}: `.length))
    }

    it('are read with the mode enforce where none is given, and limits of enterprise as they are given or not', () => {
      const free = { limits: { minute: 11, day: 12 } }
      const text = JSON.stringify({ ...OTHER_PLANS, plans: { ...OTHER_PLANS.plans, free, enterprise: {} } })
      const { plans } = readConfig({ PLANS_FILE: aFile(text) })
      expect(plans.plans.free).to.deep.equal({ limits: { minute: 11, day: 12 }, mode: 'enforce' })
      expect(plans.plans.enterprise).to.deep.equal({ mode: 'enforce' })
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
      it(`are refused with ${what}, and the fault names the place`, () => {
        const faults = faultsWith(path, value)
        expect(faults).to.have.lengthOf(1)
        expect(faults[0]).to.match(new RegExp(`^${place.replaceAll('.', '\\.')}: .`))
      })
    }

    it('are refused with what is unknown in them by its name', () => {
      expect(faultsWith('plans.pro.price', 7)[0]).to.include('price')
      expect(faultsWith('bans', {})[0]).to.include('bans')
    })

    it('say which two numbers of the ban contradict each other', () => {
      expect(faultsWith('ban.longestMs', 20)[0]).to.include('longestMs').and.to.include('firstMs')
    })

    it('report all their faults together, and with those of other settings', () => {
      const text = JSON.stringify(changed(changed(OTHER_PLANS, ['plans', 'free', 'limits', 'minute'], -1), ['ban', 'firstMs'], 0))
      expect(faultsOf({ PLANS_FILE: aFile(text), PORT: 'x' })).to.have.lengthOf(3)
    })

    for (const text of ['', '{', 'plans: {}', '{"plans":{},}', '// comment\n{}']) {
      it(`are refused when it is no JSON: ${JSON.stringify(text)}`, () => {
        const path = aFile(text)
        const faults = faultsOf({ PLANS_FILE: path })
        expect(faults).to.have.lengthOf(1)
        expect(faults[0]).to.include(`PLANS_FILE ${path}: no JSON`)
      })
    }

    for (const text of ['null', '[]', '7', '"plans"']) {
      it(`are refused when it is JSON of another kind: ${text}`, () => {
        expect(parsePlans(text)).to.have.property('faults').with.lengthOf(1)
      })
    }

    it('are refused when it is not there', () => {
      const path = join(directory, 'missing')
      expect(faultsOf({ PLANS_FILE: path })).to.deep.equal([`PLANS_FILE: cannot read ${path} (ENOENT)`])
    })
  })
})

/** None when the settings are usable. */
function faultsOf(env: Environment): readonly string[] {
  try {
    readConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const fault of error.faults) expect(error.message).to.include(fault)
    return error.faults
  }
  return []
}

function changed(tree: unknown, [first, ...rest]: readonly string[], value: unknown): unknown {
  if (first === undefined) return value
  const { [first]: before, ...others } = tree as Record<string, unknown>
  const after = changed(before, rest, value)
  return after === undefined ? others : { ...others, [first]: after }
}
