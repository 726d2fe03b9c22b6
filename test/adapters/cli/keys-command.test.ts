import { expect } from 'chai'
import { ApiKeyNotFound, ApiKeyRevoked, StoreUnavailable } from '../../../src/core/errors.js'
import { PLAN_NAMES } from '../../../src/core/plan.js'
import { anApiKey, someQuotaRules } from '../../support/builders.js'
import { rejection } from '../../contracts/rejection.js'
import { MemoryKeysCommand } from '../../support/memory-keys-command.js'
import { runProgram } from '../../support/command-line.js'

const SECRET = /pst_live_[0-9A-Za-z]{36}/
const FIELDS = ['keyId', 'hint', 'owner', 'plan', 'limits', 'ownLimits', 'state', 'createdAt']

/** The fields of a printed key that these tests read. */
interface PrintedKey {
  readonly keyId: string
  readonly plan: string
  readonly hint: string
  readonly expiresAt?: string
}

interface RotatedKey {
  readonly key: string
  readonly hint: string
  readonly oldSecret: { readonly expiresAt: string }
}

describe('petstore keys', () => {
  let keys: MemoryKeysCommand

  beforeEach(() => {
    keys = new MemoryKeysCommand()
  })

  const issue = (...args: string[]) => keys.printJson<PrintedKey & { key: string }>('issue', '--plan', 'free', ...args)

  it('audits each change that was made, without a secret, and nothing else', async () => {
    const { keyId, key, hint } = await issue('--owner', 'Acme')
    await keys.printJson('plan', keyId, 'pro', '--minute', '5', '--day', '50')
    const rotated = await keys.printJson<RotatedKey>('rotate', keyId, '--by', ' Ünï 🐶 ')
    await keys.printJson('rotate', keyId, '--finish', '--by', 'bob')
    keys.quotas.unban = async () => 'lifted'
    await keys.printJson('unban', keyId)
    await keys.printJson('revoke', keyId, '--by', 'bob')
    for (const command of [['list'], ['show', keyId], ['usage', keyId], ['history', keyId]]) await keys.printJson(...command)
    expect(await rejection(keys.run('plan', keyId, 'free'))).to.be.instanceOf(ApiKeyRevoked)

    const limits = { minute: 5, day: 50 }
    const by = 'system-user'
    const secrets = { hint: rotated.hint, oldHint: hint, oldSecretExpiresAt: rotated.oldSecret.expiresAt }
    expect(keys.audited).to.deep.equal([
      { msg: 'API key issued', by, keyId, owner: 'Acme', plan: 'free', limits: undefined },
      { msg: 'plan of API key changed', by, keyId, owner: 'Acme', plan: 'pro', limits },
      { msg: 'API key rotated', by: 'Ünï 🐶', keyId, owner: 'Acme', plan: 'pro', limits, ...secrets },
      { msg: 'rotation of API key finished', by: 'bob', keyId, owner: 'Acme', plan: 'pro', limits },
      { msg: 'API key unbanned', by, keyId, owner: 'Acme', plan: 'pro', limits },
      { msg: 'API key revoked', by: 'bob', keyId, owner: 'Acme', plan: 'pro', limits },
    ])
    expect(JSON.stringify(keys.audited)).to.not.include(key).and.not.include(rotated.key)
  })

  for (const [what, args, sentence] of [
    ['a revocation of a revoked key', ['revoke', 'key_revoked'], 'The key was already revoked.'],
    ['the end of a rotation that is not in progress', ['rotate', 'key_one', '--finish'], 'No rotation of the key is in progress.'],
    ['a change to the plan of the key', ['plan', 'key_one', 'free'], 'The key already has this plan and these limits.'],
    [
      'a change to the plan and the limits of the key',
      ['plan', 'key_limited', 'free', '--minute', '1', '--day', '2'],
      'The key already has this plan and these limits.',
    ],
  ] as const) {
    it(`succeeds, says that nothing changed, and neither records nor audits ${what}`, async () => {
      await keys.store(anApiKey(), anApiKey('revoked', { revokedAtMs: 1 }), anApiKey('limited', { limits: { minute: 1, day: 2 } }))
      const shown = await keys.print('show', args[1])
      expect(await keys.print(...args)).to.equal(`${shown}\n${sentence}\n`)
      keys.isQuotaStoreDown = true
      expect(await keys.print(...args)).to.equal(
        `${shown}\n${sentence}\nRedis is unavailable, so the change takes effect within 10 seconds.\n`,
      )
      expect(keys.audited).to.deep.equal([])
      expect(await keys.apiKeyHistory.list({ keyId: args[1] })).to.have.lengthOf(1)
    })
  }

  it('does not audit an unban of a key that is not banned', async () => {
    await keys.store(anApiKey())
    await keys.print('unban', 'key_one')
    expect(keys.audited).to.deep.equal([])
  })

  it('audits a ban that was lifted once, even if it was recorded only by repeating the command', async () => {
    await keys.store(anApiKey())
    const outcomes = ['lifted', 'not-banned', 'not-banned'] as const
    let attempts = 0
    keys.quotas.unban = async () => outcomes[attempts++] ?? 'not-banned'
    const { apiKeyHistory } = keys
    const add = apiKeyHistory.add.bind(apiKeyHistory)
    apiKeyHistory.add = () => Promise.reject(new StoreUnavailable('MongoDB is unavailable'))
    for (let count = 0; count < 2; count++) expect(await rejection(keys.run('unban', 'key_one'))).to.be.instanceOf(StoreUnavailable)
    apiKeyHistory.add = add
    await keys.print('unban', 'key_one')
    expect(keys.audited.map(({ msg }) => msg)).to.deep.equal(['API key unbanned'])
  })

  describe('issue', () => {
    it('prints the secret once and describes the key to people', async () => {
      const text = await keys.print('issue', '--plan', 'pro', '--owner', 'Acme')
      expect(text).to.match(
        /^The API key's secret. It is shown only once and is not stored:\n\n {2}pst_live_\w{36}\n\nkey ID +key_\w{16}\n/,
      )
      expect(text.match(new RegExp(SECRET, 'g'))).to.have.lengthOf(1)
      for (const line of ['owner      Acme', 'plan       pro, 300 per minute, 10000 per day', 'state      active', 'expires    never'])
        expect(text.split('\n')).to.include(line)
    })

    it('prints one JSON object with the secret as key', async () => {
      const printed = await issue('--owner', 'Acme')
      expect(printed).to.have.all.keys('key', ...FIELDS)
      expect(printed).to.deep.include({ owner: 'Acme', plan: 'free', limits: { minute: 60, day: 1000 }, ownLimits: false, state: 'active' })
      expect(printed.key).to.match(new RegExp(`^${SECRET.source}$`))
      expect(printed.keyId).to.match(/^key_[0-9A-Za-z]{16}$/)
    })

    it('sets limits on the key with --minute and --day on any plan, and its expiry with --expires', async () => {
      const nowMs = Date.now()
      for (const plan of PLAN_NAMES) {
        const limits = ['--minute', '7', '--day', '70']
        const printed = await issue('--plan', plan, '--owner', '  Ünï 🐶 "GmbH"  ', ...limits, '--expires', '90d')
        expect(printed).to.deep.include({ plan, owner: 'Ünï 🐶 "GmbH"', limits: { minute: 7, day: 70 }, ownLimits: true })
        expect(Date.parse(printed.expiresAt ?? '') - nowMs).to.be.within(90 * 86_400_000, 90 * 86_400_000 + 30_000)
      }
    })

    it('warns that a key may exist if the store becomes unavailable', async () => {
      const insert = () => Promise.reject(new StoreUnavailable('MongoDB is unavailable'))
      Object.assign(keys.apiKeyStore, { insert })
      const error = await rejection(keys.run('issue', '--plan', 'free', '--owner', 'Acme'))
      expect(error)
        .to.be.instanceOf(StoreUnavailable)
        .with.property(
          'message',
          'MongoDB is unavailable; the key may have been created anyway: find it with petstore keys list and revoke it',
        )
    })
  })

  describe('list', () => {
    it('prints a table with one line per key, oldest first, or a JSON array', async () => {
      const ids = ['one', 'two', 'three'].map((name) => `key_${name}`)
      await keys.store(anApiKey('three', { createdAtMs: 3 }), anApiKey('one', { createdAtMs: 1 }), anApiKey('two', { createdAtMs: 2 }))
      const [head, ...lines] = (await keys.print('list')).trimEnd().split('\n')
      expect(head).to.match(/^KEY ID +HINT +OWNER +PLAN +LIMITS +STATE +CREATED +EXPIRES +LAST USED$/)
      expect(lines.map((line) => line.split(' ')[0])).to.deep.equal(ids)
      const printed = await keys.printJson<PrintedKey[]>('list')
      expect(printed.map(({ keyId }) => keyId)).to.deep.equal(ids)
      expect(printed[0]).to.have.all.keys(FIELDS)
    })

    it('prints only the keys that match all filters', async () => {
      const [active, pro, revoked, expired, other] = ['key_active', 'key_pro', 'key_revoked', 'key_expired', 'key_other']
      await keys.store(
        anApiKey('active'),
        anApiKey('pro', { plan: 'pro' }),
        anApiKey('revoked', { revokedAtMs: Date.now() - 1 }),
        anApiKey('expired', { expiresAtMs: Date.now() - 1 }),
        anApiKey('other', { owner: 'Other' }),
      )
      for (const [args, expected] of [
        [[], [active, pro, revoked, expired, other]],
        [
          ['--owner', 'Acme'],
          [active, pro, revoked, expired],
        ],
        [['--plan', 'pro'], [pro]],
        [['--state', 'revoked'], [revoked]],
        [['--state', 'expired'], [expired]],
        [['--state', 'active', '--plan', 'free', '--owner', 'Acme'], [active]],
        [['--owner', 'Nobody'], []],
      ] satisfies [string[], unknown[]][]) {
        const printed = await keys.printJson<PrintedKey[]>('list', ...args)
        expect(printed.map(({ keyId }) => keyId)).to.have.members(expected)
      }
      expect(await keys.print('list', '--owner', 'Nobody')).to.equal('No API key matches.\n')
    })
  })

  it('show, plan and revoke print the key and when a change takes effect', async () => {
    const { key, ...issued } = await issue('--owner', 'Acme', '--minute', '7', '--day', '70')
    const { keyId } = issued
    expect(key).to.match(SECRET)
    expect(await keys.printJson('show', keyId)).to.deep.equal(issued)

    const onPro = { ...issued, plan: 'pro', limits: { minute: 300, day: 10_000 }, ownLimits: false }
    expect(await keys.printJson('plan', keyId, 'pro')).to.deep.equal({ ...onPro, takesEffect: 'at once' })
    expect(await keys.printJson('show', keyId)).to.deep.equal(onPro)

    const onEnterprise = { ...onPro, plan: 'enterprise', limits: { minute: 8, day: 80 }, ownLimits: true, takesEffect: 'at once' }
    expect(await keys.printJson('plan', keyId, 'enterprise', '--minute', '8', '--day', '80')).to.deep.equal(onEnterprise)
    expect(await keys.print('plan', keyId, 'pro')).to.match(/^plan +pro, 300 per minute, 10000 per day$/m)

    keys.isQuotaStoreDown = true
    const { revokedAt, ...revoked } = await keys.printJson<{ revokedAt: string }>('revoke', keyId)
    expect(revoked).to.deep.equal({ ...onPro, state: 'revoked', takesEffect: 'within 10 s' })
    const shown = await keys.print('show', keyId)
    expect(await keys.print('revoke', keyId)).to.equal(
      `${shown}\nThe key was already revoked.\nRedis is unavailable, so the change takes effect within 10 seconds.\n`,
    )
    keys.isQuotaStoreDown = false
    expect(await keys.printJson('revoke', keyId)).to.deep.equal({ ...revoked, revokedAt, takesEffect: 'at once' })
    expect(await keys.print('revoke', keyId)).to.equal(`${shown}\nThe key was already revoked.\n`)
  })

  it('plan rejects a revoked key and changes nothing', async () => {
    await keys.store(anApiKey('one', { revokedAtMs: 1 }))
    const error = await rejection(keys.run('plan', 'key_one', 'pro'))
    expect(error).to.be.instanceOf(ApiKeyRevoked).with.property('message', 'API key key_one is revoked, so its plan cannot be changed')
    expect(await keys.printJson('show', 'key_one')).to.include({ plan: 'free' })
  })

  it('issue and plan treat a missing limit as invalid usage if the plan has no limits, and change nothing', async () => {
    await keys.store(anApiKey('one', { limits: { minute: 1, day: 2 } }))
    const before = await keys.print('list')
    for (const args of [
      ['issue', '--plan', 'enterprise', '--owner', 'Acme'],
      ['plan', 'key_one', 'enterprise'],
    ]) {
      const outcome = await keys.run(...args)
      expect(outcome).to.include({ usage: 'wrong', stdout: '' })
      expect(outcome.stderr).to.equal(
        `error: Plan enterprise requires limits on the key, per minute and per day: use --minute and --day\n(see petstore keys ${args[0]} --help)\n`,
      )
    }
    expect(await keys.print('list')).to.equal(before)
  })

  it('usage prints the quota, the strikes and the ban of a key, and unban lifts the ban', async () => {
    await keys.store(anApiKey('one'))
    await keys.quotas.take('key_one', someQuotaRules(), { version: 1 })
    expect(await keys.printJson('usage', 'key_one')).to.deep.nested.include({ keyId: 'key_one', 'minute.used': 1, strikes: 0, banLevel: 0 })
    expect(await keys.print('usage', 'key_one'))
      .to.match(/^key_one, free: not banned, strikes in this minute: 0\n\nWINDOW +USED +REMAINING +LIMIT +RESETS\n/)
      .and.match(/^minute +1 +59 +60 +\S+Z$/m)
    expect(await keys.printJson('unban', 'key_one')).to.deep.equal({ keyId: 'key_one', outcome: 'not-banned' })
    expect(await keys.print('unban', 'key_one')).to.equal('The key was not banned. Its strikes and ban history are cleared.\n')
  })

  it('every command with a key ID rejects one that does not exist', async () => {
    for (const args of [['show'], ['plan', 'pro'], ['rotate'], ['revoke'], ['usage'], ['unban'], ['history']]) {
      const [command = '', ...rest] = args
      const error = await rejection(keys.run(command, 'key_nope', ...rest))
      expect(error).to.be.instanceOf(ApiKeyNotFound).with.property('message', 'No API key has the ID key_nope')
    }
  })

  it('never prints a secret or its hash again, only the last four characters of the secret', async () => {
    const { keyId, key } = await issue('--owner', 'Acme')
    for (const args of [['list'], ['show', keyId], ['plan', keyId, 'pro'], ['history', keyId], ['revoke', keyId]].flatMap((one) => [
      one,
      [...one, '--json'],
    ])) {
      const text = await keys.print(...args)
      expect(text, args.join(' ')).to.include(`pst_live_…${key.slice(-4)}`)
      expect(text, args.join(' '))
        .to.not.match(SECRET)
        .and.not.match(/[0-9a-f]{64}/)
    }
  })
})

describe('petstore keys with invalid usage', () => {
  const ISSUE = ['issue', '--plan', 'free', '--owner', 'Acme']

  for (const [args, problem] of [
    [['fly'], "unknown command 'fly'"],
    [['list', '--all'], "unknown option '--all'"],
    [['issue', '--owner', 'Acme'], "required option '--plan <plan>'"],
    [['issue', '--plan', 'free'], "required option '--owner <name>'"],
    [['issue', '--plan', 'gold', '--owner', 'Acme'], 'Allowed choices are free, pro, business, enterprise.'],
    [['plan', 'key_nope', 'gold'], 'Allowed choices are free, pro, business, enterprise.'],
    [['list', '--state', 'gone'], 'Allowed choices are active, expired, revoked.'],
    [['issue', '--plan', 'free', '--owner', ' '], 'It must be 1 to 200 characters'],
    [['list', '--owner', ''], 'It must be 1 to 200 characters'],
    [[...ISSUE, '--minute', '5'], 'error: Set both --minute and --day, or neither.'],
    [['plan', 'key_nope', 'pro', '--day', '5'], 'error: Set both --minute and --day, or neither.'],
    [[...ISSUE, '--minute', '0', '--day', '5'], "option '--minute <n>' argument '0' is invalid"],
    [[...ISSUE, '--minute', '5', '--day', '5.5'], "option '--day <n>' argument '5.5' is invalid"],
    [[...ISSUE, '--expires', 'tomorrow'], "option '--expires': It must be a duration such as 90d"],
    [[...ISSUE, '--expires', '2020-01-01'], "option '--expires': It must be in the future."],
    [['revoke'], "missing required argument 'key-id'"],
    [['plan', 'key_nope'], "missing required argument 'plan'"],
    [['revoke', 'key_one', 'key_two'], 'too many arguments'],
    [['show', 'no id'], "argument 'key-id': It must be a key ID"],
    [['rotate', 'key_nope', '--grace', 'tomorrow'], "argument 'tomorrow' is invalid. It must be a duration such as 7d, 24h or 30m, or 0."],
    [['rotate', 'key_nope', '--grace', '-1h'], "argument '-1h' is invalid"],
    [['rotate', 'key_nope', '--grace', '1h', '--finish'], "option '--finish' cannot be used with option '--grace <duration>'"],
    [['rotate', 'key_nope', '--by', ''], 'It must be 1 to 200 characters'],
    [['history', '--since', 'tomorrow'], "option '--since': It must be a duration such as 90d"],
    [['history', '--until', '2026-02-31'], "option '--until': It must be a duration such as 90d"],
    [['history', 'no id'], "argument 'key-id': It must be a key ID"],
    [['history', '--limit', '0'], "argument '0' is invalid"],
    [['usage', 'no id'], "argument 'key-id': It must be a key ID"],
  ] satisfies [string[], string][]) {
    it(`prints the error and points to --help, and does nothing: ${args.join(' ')}`, async () => {
      const outcome = await runProgram(['keys', ...args])
      expect(outcome).to.include({ usage: 'wrong', stdout: '' })
      expect(outcome.stderr)
        .to.include(problem)
        .and.match(/\n\(see petstore keys( [a-z]+)? --help\)\n$/)
        .and.not.include('Usage:')
    })
  }

  it('prints the usage without a command', async () => {
    const outcome = await runProgram(['keys'])
    expect(outcome).to.include({ usage: 'wrong', stdout: '' })
    expect(outcome.stderr).to.include('Usage: petstore keys')
  })

  it('does not repeat a secret that is passed instead of a key ID', async () => {
    const secret = 'pst_live_bVi0JTUPJj8DebGxrInogr1d3uH0ci32MvKE'
    for (const args of [
      ['show', secret],
      ['plan', secret, 'pro'],
      ['revoke', secret],
    ]) {
      const outcome = await runProgram(['keys', ...args])
      expect(outcome).to.include({ usage: 'wrong', stdout: '' })
      expect(outcome.stderr).to.include('not the secret').and.not.include(secret.slice(9, 20))
    }
  })

  it('does not repeat terminal control characters', async () => {
    const escape = '\u001B[31m\u009B2J\r\u0007'
    for (const args of [
      ['issue', '--plan', 'free', '--owner', `a${escape}b`],
      ['issue', '--plan', `gold${escape}`, '--owner', 'Acme'],
      ['show', `key_${escape}`],
      ['list', `--${escape}`],
      [`fly${escape}`],
    ]) {
      const outcome = await runProgram(['keys', ...args])
      expect(outcome).to.include({ usage: 'wrong', stdout: '' })
      expect(outcome.stderr, JSON.stringify(args)).to.not.match(/(?!\n)\p{Cc}/u)
    }
  })
})

describe('petstore keys --help', () => {
  const PLANS = '"free", "pro", "business", "enterprise"'

  for (const [command, mentions] of [
    [
      [],
      [
        'issue',
        'list',
        'show',
        'plan',
        'revoke',
        'usage',
        'unban',
        'rotate',
        'history',
        'To replace the secret of a key without downtime',
        'REDIS_PREFIX',
      ],
    ],
    [['issue'], ['--plan', '(required)', PLANS, '--owner', '--minute', '--day', '--expires', '90d', 'default: never', '--json']],
    [['list'], ['--owner', '--plan', '--state', '"active", "expired"', '--json']],
    [['show'], ['<key-id>', 'key_…', '--json']],
    [['plan'], ['<key-id>', '<plan>', PLANS, 'removed unless you pass them again', '--minute', '--day', '--json']],
    [['rotate'], ['<key-id>', '--grace', 'default: 24h', '--finish', '--by', 'default: the system user', '--json']],
    [['history'], ['[key-id]', '--owner', '--since', '--until', '--limit', '--json']],
    [['revoke'], ['<key-id>', 'permanently', '--by', '--json']],
  ] as const) {
    it(`explains every argument and option: ${['petstore', 'keys', ...command].join(' ')}`, async () => {
      const { stdout, ...rest } = await runProgram(['keys', ...command, '--help'])
      expect(rest).to.deep.equal({ usage: 'right', stderr: '' })
      expect(stdout).to.include(`Usage: petstore ${['keys', ...command].join(' ')}`)
      for (const mention of [...mentions, 'MONGODB_URL', 'Exit codes: 0 success, 1 failure, 2 invalid usage or settings.'])
        expect(stdout.replace(/\s+/g, ' ')).to.include(mention)
      for (const line of stdout.split('\n')) expect(line.length, line).to.be.at.most(80)
    })
  }
})
