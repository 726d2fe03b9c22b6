import { expect } from 'chai'
import { MongoApiKeyStore } from '../../src/adapters/mongo/mongo-api-key-store.js'
import { MongoConnection } from '../../src/adapters/mongo/mongo-connection.js'
import { SystemClock } from '../../src/adapters/node/system-clock.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { PLAN_NAMES } from '../../src/core/plan.js'
import { anApiKey } from '../support/builders.js'
import { runProgram } from '../support/command-line.js'
import type { RedisDatabase } from '../support/engines/redis-engine.js'
import { aRedisDatabase } from '../support/engines/redis-engine.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { Ended, Settings } from '../support/process.js'
import { endProcesses, runPetstore } from '../support/process.js'
import { within } from '../support/until.js'

const SECRET = /pst_live_[0-9A-Za-z]{36}/
const ANY_SECRETS = new RegExp(SECRET, 'g')
const KEY_ID = /^key_[0-9A-Za-z]{16}$/

/** What `--json` prints of a key. */
interface Printed {
  readonly key?: string
  readonly keyId: string
  readonly owner: string
  readonly plan: string
  readonly limits: { readonly minute: number; readonly day: number }
  readonly state: string
  readonly expiresAt?: string
}

const PRINTED = ['keyId', 'hint', 'owner', 'plan', 'limits', 'ownLimits', 'state', 'createdAt']

describe('petstore keys', function () {
  this.timeout(30_000)
  let database: MongoDatabase
  let redis: RedisDatabase
  let settings: Settings

  before(async function () {
    database = await aMongoDatabase(this)
    redis = await aRedisDatabase(this)
    settings = { MONGODB_URL: database.url, REDIS_URL: redis.url }
  })
  after(() => redis?.release())
  after(() => database?.drop())
  after(endProcesses)

  const run = (...args: string[]) => runPetstore(['keys', ...args], settings)

  async function json<Result>(...args: string[]): Promise<Result> {
    return JSON.parse(resultOf(await run(...args, '--json'))) as Result
  }

  const issue = (...args: string[]) => json<Printed & { key: string }>('issue', '--plan', 'free', ...args)

  describe('issue', () => {
    it('prints the secret once, and what the key is, to people', async () => {
      const text = resultOf(await run('issue', '--plan', 'pro', '--owner', 'For People'))
      expect(text.match(ANY_SECRETS)).to.have.length(1)
      expect(text).to.match(/^The API key, shown this once and stored nowhere:\n\n {2}pst_live_\w{36}\n\nkey id +key_\w{16}\n/)
      for (const line of ['owner      For People', 'plan       pro, 300 a minute, 10000 a day', 'state      active', 'expires    never']) {
        expect(text.split('\n')).to.include(line)
      }
    })

    it('prints one object to programs, with the secret as key', async () => {
      const printed = await issue('--owner', 'For Programs')
      expect(printed).to.have.all.keys('key', ...PRINTED)
      expect(printed).to.deep.include({ owner: 'For Programs', plan: 'free', limits: { minute: 60, day: 1000 }, state: 'active' })
      expect(printed.key).to.match(new RegExp(`^${SECRET.source}$`))
      expect(printed.keyId).to.match(KEY_ID)
    })

    it('gives the key limits of its own with --minute and --day, and an end with --expires', async () => {
      const nowMs = Date.now()
      const printed = await issue('--owner', 'Limited', '--minute', '7', '--day', '70', '--expires', '90d')
      expect(printed).to.have.all.keys('key', ...PRINTED, 'expiresAt')
      expect(printed).to.deep.include({ limits: { minute: 7, day: 70 }, ownLimits: true })
      expect(Date.parse(printed.expiresAt ?? '') - nowMs).to.be.within(90 * 86_400_000, 90 * 86_400_000 + 30_000)
    })

    it('takes owners of any script, without the spaces around them', async () => {
      expect(await issue('--owner', '  Ünï 🐶 "GmbH"  ')).to.include({ owner: 'Ünï 🐶 "GmbH"' })
    })

    it('puts a key with limits of its own on any plan', async () => {
      const issued = PLAN_NAMES.map((plan) => issue('--plan', plan, '--owner', 'Any', '--minute', '1', '--day', '1'))
      expect((await Promise.all(issued)).map(({ plan }) => plan)).to.deep.equal(PLAN_NAMES)
    })

    it('refuses enterprise without limits, says what to give, and issues nothing', async () => {
      const before = resultOf(await run('list'))
      const ended = await run('issue', '--plan', 'enterprise', '--owner', 'Unlimited')
      expectRejection(ended)
      expect(ended.stderr).to.match(/enterprise.*limits.*minute.*day/)
      expect(resultOf(await run('list'))).to.equal(before)
    })
  })

  describe('list', () => {
    it('has a line for each key under a head, the oldest first, and an array of them to programs', async () => {
      const issued = [
        await issue('--owner', 'Listed'),
        await issue('--owner', 'Listed', '--expires', '30m'),
        await issue('--owner', 'Listed'),
      ]
      const ids = issued.map(({ keyId }) => keyId)

      const [head, ...lines] = resultOf(await run('list', '--owner', 'Listed'))
        .trimEnd()
        .split('\n')
      expect(head).to.match(/^KEY ID +HINT +OWNER +PLAN +LIMITS +STATE +CREATED +EXPIRES +LAST USED$/)
      expect(lines.map((line) => line.split(' ')[0])).to.deep.equal(ids)

      const printed = await json<Printed[]>('list', '--owner', 'Listed')
      expect(printed.map(({ keyId }) => keyId)).to.deep.equal(ids)
      expect(printed[0]).to.have.all.keys(PRINTED)
      expect(printed[1]).to.have.all.keys(...PRINTED, 'expiresAt')
    })

    it('takes the keys that fit all filters', async () => {
      const owner = 'Filtered'
      const keys = await stored(
        anApiKey('active', { owner }),
        anApiKey('pro', { owner, plan: 'pro' }),
        anApiKey('revoked', { owner, revokedAtMs: Date.now() - 1 }),
        anApiKey('expired', { owner, expiresAtMs: Date.now() - 1 }),
      )
      const [active, pro, revoked, expired] = keys
      const filters = [
        [[], keys],
        [['--plan', 'pro'], [pro]],
        [
          ['--state', 'active'],
          [active, pro],
        ],
        [['--state', 'revoked'], [revoked]],
        [['--state', 'expired'], [expired]],
        [['--state', 'active', '--plan', 'free'], [active]],
      ] satisfies [string[], unknown[]][]
      const listed = filters.map(([args]) => json<Printed[]>('list', '--owner', owner, ...args))
      for (const [index, printed] of (await Promise.all(listed)).entries()) {
        expect(printed.map(({ keyId }) => keyId)).to.have.members(filters[index]?.[1] ?? [])
      }
    })

    it('says so when there is none, and prints an empty array to programs', async () => {
      expect(resultOf(await run('list', '--owner', 'Nobody'))).to.equal('No API key is like that.\n')
      expect(await json('list', '--owner', 'Nobody')).to.deep.equal([])
    })
  })

  describe('show, plan and revoke', () => {
    it('print the key as it is then, the same to people and to programs', async () => {
      const { key, ...issued } = await issue('--owner', 'Changing', '--minute', '7', '--day', '70')
      const { keyId } = issued
      expect(key).to.match(SECRET)
      expect(await json('show', keyId)).to.deep.equal(issued)

      const onPro = { ...issued, plan: 'pro', limits: { minute: 300, day: 10_000 }, ownLimits: false }
      expect(await json('plan', keyId, 'pro')).to.deep.equal({ ...onPro, takesEffect: 'at once' })
      expect(await json('show', keyId)).to.deep.equal(onPro)

      const onEnterprise = { ...onPro, plan: 'enterprise', limits: { minute: 8, day: 80 }, ownLimits: true }
      expect(await json('plan', keyId, 'enterprise', '--minute', '8', '--day', '80')).to.deep.equal({
        ...onEnterprise,
        takesEffect: 'at once',
      })

      const { revokedAt, ...revoked } = await json<Printed & { revokedAt: string }>('revoke', keyId)
      expect(revoked).to.deep.equal({ ...onEnterprise, state: 'revoked', takesEffect: 'at once' })
      expect(new Date(revokedAt).toISOString()).to.equal(revokedAt)
      expect(await json('revoke', keyId)).to.deep.equal({ ...revoked, revokedAt })

      const shown = resultOf(await run('show', keyId))
      expect(shown)
        .to.match(new RegExp(`^key id +${keyId}$`, 'm'))
        .and.match(/^state +revoked$/m)
      expect(resultOf(await run('revoke', keyId))).to.equal(`${shown}\nIt takes effect on the next request.\n`)
      expect(resultOf(await run('plan', keyId, 'pro'))).to.match(/^plan +pro, 300 a minute, 10000 a day$/m)
    })

    it('refuse a plan without limits for a key that is not given its own, and leave it where it was', async () => {
      const { keyId } = await issue('--owner', 'Staying')
      const before = await json('show', keyId)
      const ended = await run('plan', keyId, 'enterprise')
      expectRejection(ended)
      expect(ended.stderr).to.match(/enterprise.*limits/)
      expect(await json('show', keyId)).to.deep.equal(before)
    })

    for (const args of [
      ['show', 'key_nope'],
      ['plan', 'key_nope', 'pro'],
      ['revoke', 'key_nope'],
    ]) {
      it(`refuse a key id that does not exist: ${args[0]}`, async () => {
        const ended = await run(...args)
        expectRejection(ended)
        expect(ended.stderr).to.equal('No API key has the id key_nope\n')
      })
    }
  })

  it('makes rotation possible: two keys of an owner are valid at once, until the first is revoked', async () => {
    const [first, second] = [await issue('--owner', 'Rotating'), await issue('--owner', 'Rotating')]
    const states = async () => (await json<Printed[]>('list', '--owner', 'Rotating')).map(({ keyId, state }) => [keyId, state])
    expect(await states()).to.have.deep.members([
      [first.keyId, 'active'],
      [second.keyId, 'active'],
    ])
    await json('revoke', first.keyId)
    expect(await states()).to.have.deep.members([
      [first.keyId, 'revoked'],
      [second.keyId, 'active'],
    ])
  })

  it('never prints a secret again, nor its hash: list, show, plan and revoke know only its end', async () => {
    const { keyId, key } = await issue('--owner', 'Secretive')
    const commands = [['list'], ['show', keyId], ['plan', keyId, 'pro'], ['revoke', keyId]].flatMap((args) => [args, [...args, '--json']])
    const printed = await Promise.all(commands.map(async (args) => ({ args, text: resultOf(await run(...args)) })))
    for (const { args, text } of printed) {
      expect(text, args.join(' ')).to.include(`pst_live_…${key.slice(-4)}`)
      expect(text, args.join(' '))
        .to.not.match(SECRET)
        .and.not.match(/[0-9a-f]{64}/)
    }
  })

  it('leaves the secret out of the database', async () => {
    const { keyId, key } = await issue('--owner', 'Kept')
    const connection = new MongoConnection(database.url)
    const stored = await connection.db.collection<{ _id: string }>('apiKeys').findOne({ _id: keyId })
    await connection.close()
    expect(stored).to.be.an('object')
    expect(JSON.stringify(stored)).to.not.include(key.slice(9, 39))
  })

  /** Puts keys there as they are, which the command line cannot: what has expired, for one, cannot be issued. Resolves to their ids. */
  async function stored(...keys: ApiKey[]): Promise<string[]> {
    const connection = new MongoConnection(database.url)
    const store = new MongoApiKeyStore(connection.db, new SystemClock())
    for (const key of keys) await store.insert(key)
    await connection.close()
    return keys.map(({ keyId }) => keyId)
  }
})

describe('petstore keys, used wrongly', () => {
  const ISSUE = ['issue', '--plan', 'free', '--owner', 'Acme']

  for (const [what, args, problem] of [
    ['no command', [], 'Usage: petstore keys'],
    ['an unknown command', ['fly'], "unknown command 'fly'"],
    ['an unknown option', ['list', '--all'], "unknown option '--all'"],
    ['no plan', ['issue', '--owner', 'Acme'], "required option '--plan <plan>'"],
    ['no owner', ['issue', '--plan', 'free'], "required option '--owner <name>'"],
    ['an unknown plan', ['issue', '--plan', 'gold', '--owner', 'Acme'], 'Allowed choices are free, pro, business, enterprise.'],
    ['an unknown plan to change to', ['plan', 'key_nope', 'gold'], 'Allowed choices are free, pro, business, enterprise.'],
    ['an unknown state', ['list', '--state', 'gone'], 'Allowed choices are active, expired, revoked.'],
    ['an empty owner', ['issue', '--plan', 'free', '--owner', ' '], 'It must be 1 to 200 characters'],
    ['an empty owner to list', ['list', '--owner', ''], 'It must be 1 to 200 characters'],
    ['one limit without the other', [...ISSUE, '--minute', '5'], '--minute and --day go together'],
    ['one limit without the other on a change', ['plan', 'key_nope', 'pro', '--day', '5'], '--minute and --day go together'],
    ['a limit of 0', [...ISSUE, '--minute', '0', '--day', '5'], "option '--minute <n>' argument '0' is invalid"],
    ['a fraction', [...ISSUE, '--minute', '5', '--day', '5.5'], "option '--day <n>' argument '5.5' is invalid"],
    ['an expiry that is none', [...ISSUE, '--expires', 'tomorrow'], "option '--expires': It must be a span such as 90d"],
    ['an expiry in the past', [...ISSUE, '--expires', '2020-01-01'], "option '--expires': It must lie in the future."],
    ['no key id', ['revoke'], "missing required argument 'key-id'"],
    ['no plan to change to', ['plan', 'key_nope'], "missing required argument 'plan'"],
    ['one key id too many', ['revoke', 'key_one', 'key_two'], 'too many arguments'],
    ['something that is no key id', ['show', 'no id'], "argument 'key-id': It must be the id of a key"],
  ] satisfies [string, string[], string][]) {
    it(`says what is wrong and how it is used, and does nothing: ${what}`, async () => {
      const ended = await runProgram(['keys', ...args])
      expect(ended).to.include({ usage: 'wrong', stdout: '' })
      expect(ended.stderr).to.include(problem).and.include('Usage: petstore keys')
    })
  }

  it('does not repeat a secret that was given where the id belongs', async () => {
    const secret = 'pst_live_bVi0JTUPJj8DebGxrInogr1d3uH0ci32MvKE'
    for (const args of [
      ['show', secret],
      ['plan', secret, 'pro'],
      ['revoke', secret],
    ]) {
      const ended = await runProgram(['keys', ...args])
      expect(ended).to.include({ usage: 'wrong', stdout: '' })
      expect(ended.stderr).to.include('not its secret').and.not.include(secret.slice(9, 20))
    }
  })

  it('repeats nothing that steers the terminal', async () => {
    const escape = '\u001B[31m\u009B2J\r\u0007'
    for (const args of [
      ['issue', '--plan', 'free', '--owner', `a${escape}b`],
      ['issue', '--plan', `gold${escape}`, '--owner', 'Acme'],
      ['show', `key_${escape}`],
      ['list', `--${escape}`],
      [`fly${escape}`],
    ]) {
      const ended = await runProgram(['keys', ...args])
      expect(ended).to.include({ usage: 'wrong', stdout: '' })
      expect(ended.stderr, JSON.stringify(args)).to.not.match(/(?!\n)\p{Cc}/u)
    }
  })
})

describe('petstore keys, without a MongoDB', function () {
  this.timeout(30_000)
  after(endProcesses)

  for (const args of [[], ['issue', '--plan', 'gold', '--owner', 'Acme']]) {
    it(`ends with 2 when it is used wrongly, whatever the settings: ${['petstore', 'keys', ...args].join(' ')}`, async () => {
      for (const settings of [{}, { MONGODB_URL: 'nonsense', REDIS_URL: 'nonsense' }]) {
        const ended = await runPetstore(['keys', ...args], settings)
        expect(ended).to.include({ exitCode: 2, stdout: '' })
        expect(ended.stderr).to.include('Usage: petstore keys')
      }
    })
  }

  const COMMANDS = [
    ['list'],
    ['issue', '--plan', 'free', '--owner', 'Acme'],
    ['show', 'key_nope'],
    ['plan', 'key_nope', 'pro'],
    ['revoke', 'key_nope'],
  ]

  for (const args of COMMANDS) {
    it(`refuses in one sentence that names MONGODB_URL: ${args[0]}`, async () => {
      const ended = await runPetstore(['keys', ...args])
      expectRejection(ended)
      expect(ended.stderr).to.match(/\bset MONGODB_URL\b/)
    })
  }

  it('says within seconds that it cannot be reached, in one sentence without the password', async () => {
    const away = runPetstore(['keys', 'list'], {
      MONGODB_URL: 'mongodb://petstore:hunter2@127.0.0.1:1/petstore',
      REDIS_URL: 'redis://127.0.0.1:1',
    })
    const ended = await within(6_000, 'the rejection', away)
    expectRejection(ended)
    expect(ended.stderr)
      .to.match(/MongoDB could not be reached/)
      .and.not.include('hunter2')
  })

  for (const [what, url] of [
    ['no URL', 'petstore:hunter2@db/petstore'],
    ['another kind of URL', 'redis://petstore:hunter2@db'],
    ['a URL without a host', 'mongodb://petstore:hunter2@'],
    ['a URL with a port that is none', 'mongodb://petstore:hunter2@db:port/petstore'],
    ['a URL whose password is not escaped', 'mongodb://petstore:hunter2/x@db/petstore'],
    ['a URL whose password is escaped wrongly', 'mongodb://petstore:hunter2%ZZ@db/petstore'],
    ['a URL with an option that is none', 'mongodb://petstore:hunter2@db/petstore?password=hunter2'],
  ] as const) {
    it(`says that MONGODB_URL is at problem, and repeats no password: ${what}`, async () => {
      const ended = await runPetstore(['keys', 'list'], { MONGODB_URL: url, REDIS_URL: 'redis://127.0.0.1:1' })
      expect(ended.stdout).to.equal('')
      expect(ended.exitCode).to.equal(2)
      expect(ended.stderr).to.include('MONGODB_URL').and.not.include('hunter2').and.not.include('    at ')
    })
  }

  it('refuses settings that are wrong, with all their problems', async () => {
    const ended = await runPetstore(['keys', 'list'], {
      MONGODB_URL: 'mongodb://db',
      REDIS_URL: 'http://cache',
      MONGODB_URI: 'x',
      PORT: 'http',
    })
    expect(ended).to.include({ exitCode: 2, stdout: '' })
    for (const name of ['REDIS_URL', 'MONGODB_URI', 'PORT']) expect(ended.stderr).to.match(new RegExp(`^ {2}- ${name} `, 'm'))
  })
})

describe('petstore keys --help', () => {
  for (const [command, mentions] of [
    [[], ['issue', 'list', 'show', 'plan', 'revoke', 'To replace a key without a gap']],
    [
      ['issue'],
      [
        '--plan',
        '(required)',
        '"free", "pro", "business", "enterprise"',
        '--owner',
        '--minute',
        '--day',
        '--expires',
        '90d',
        'default: never',
        '--json',
      ],
    ],
    [['list'], ['--owner', '--plan', '--state', '"active", "expired"', '--json']],
    [['show'], ['<key-id>', 'key_…', '--json']],
    [['plan'], ['<key-id>', '<plan>', '"free", "pro", "business", "enterprise"', '--minute', '--day', '--json']],
    [['revoke'], ['<key-id>', 'for good', '--json']],
  ] as const) {
    it(`tells a stranger all of it: ${['petstore', 'keys', ...command].join(' ')}`, async () => {
      const { stdout, ...rest } = await runProgram(['keys', ...command, '--help'])
      expect(rest).to.deep.equal({ usage: 'right', stderr: '' })
      expect(stdout).to.include(`Usage: petstore ${['keys', ...command].join(' ')}`)
      for (const mention of [...mentions, 'MONGODB_URL', 'Exit codes: 0 done, 1 refused or failed, 2 wrong usage or settings.']) {
        expect(stdout.replace(/\s+/g, ' ')).to.include(mention)
      }
    })
  }

  it('wants no settings, and ends with 0', async () => {
    expect(resultOf(await runPetstore(['keys', 'issue', '--help'], { MONGODB_URL: 'nonsense', REDIS_URL: 'nonsense' }))).to.include(
      'Usage: petstore keys issue',
    )
  }).timeout(30_000)
})

/** What a command that succeeded has printed; to standard error nothing. */
function resultOf(ended: Ended): string {
  expect(ended).to.include({ exitCode: 0, stderr: '' })
  return ended.stdout
}

/** One sentence, to standard error. */
function expectRejection(ended: Ended): void {
  expect(ended).to.include({ exitCode: 1, stdout: '' })
  expect(ended.stderr).to.match(/^[^\n]+\n$/)
}
